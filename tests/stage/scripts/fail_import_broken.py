from broken.text import anything
