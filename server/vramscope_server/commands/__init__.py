"""Commands on their way: asked for by a person, carried to the ranks, answered by receipts."""
