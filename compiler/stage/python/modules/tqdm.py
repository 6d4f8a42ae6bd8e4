# `tqdm` for scripts: what it shows is left out, so that only the script's own output appears.


class tqdm:
    def __init__(self, iterable=None, desc=None, total=None, **options):
        self.iterable, self.desc, self.n = iterable, desc, 0
        self.total = len(iterable) if total is None and hasattr(iterable, "__len__") else total

    def __iter__(self):
        return iter(self.iterable)

    def __len__(self):
        return self.total

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def update(self, n=1):
        self.n += n

    def set_description(self, desc=None, refresh=True):
        self.desc = desc

    def set_postfix(self, ordered_dict=None, refresh=True, **values):
        pass

    def set_postfix_str(self, s="", refresh=True):
        pass

    def refresh(self):
        pass

    def close(self):
        pass

    @staticmethod
    def write(s, file=None, end="\n", nolock=False):
        print(s, end=end)


def trange(*bounds, **options):
    return tqdm(range(*bounds), **options)
