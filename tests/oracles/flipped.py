"""Functions with a sign turned around, which a check of signs must notice."""


def turned(function, where: int | None = None):
    """The function with the sign of its result, or of the part `where` of it, turned around."""

    def other(*arguments):
        result = function(*arguments)
        return -result if where is None else (*result[:where], -result[where], *result[where + 1 :])

    return other
