import broken.use
