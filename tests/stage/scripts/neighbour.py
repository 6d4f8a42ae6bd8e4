LENGTH = 8
counter = []
if __name__ == "__main__":
    print("a script too", __package__ is None or __package__ == "")


def area(width):
    return width * LENGTH
