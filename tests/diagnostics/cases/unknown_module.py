import tilelang
import mathh
