class Model:
    def forward(self):
        return self.wieght


m = Model()
m.weight = 1
m.forward()
