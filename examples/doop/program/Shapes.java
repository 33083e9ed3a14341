/** A small program for points-to analyses: containers, visitors, a registry and exceptions. */
abstract class Shape {
    static final Registry REGISTRY = new Registry();
    private Object label;

    Shape() { REGISTRY.note(this); }

    void label(Object label) { this.label = label; }

    Object label() { return label; }

    abstract Object accept(Visitor visitor);
}

class Circle extends Shape {
    Object accept(Visitor visitor) { return visitor.circle(this); }
}

class Square extends Shape {
    Object accept(Visitor visitor) { return visitor.square(this); }
}

class Group extends Shape {
    final Chain members = new Chain();

    Object accept(Visitor visitor) {
        for (Steps steps = members.steps(); steps.hasNext(); ) {
            ((Shape) steps.next()).accept(visitor);
        }
        return this;
    }
}

interface Visitor {
    Object circle(Circle circle);

    default Object square(Square square) { return square; }
}

class Labels implements Visitor {
    public Object circle(Circle circle) { return circle.label(); }

    public Object square(Square square) { return square.label(); }
}

class Circles implements Visitor {
    public Object circle(Circle circle) { return circle; }
}

interface Steps {
    boolean hasNext();

    Object next();
}

/** A linked list, whose nodes are made in one place for all lists. */
class Chain {
    private static class Node {
        Object item;
        Node next;

        Node(Object item, Node next) {
            this.item = item;
            this.next = next;
        }
    }

    private Node first;

    void add(Object item) { first = new Node(item, first); }

    Object first() {
        if (first == null) throw new Missing("empty");
        return first.item;
    }

    Steps steps() {
        return new Steps() {
            private Node at = first;

            public boolean hasNext() { return at != null; }

            public Object next() {
                Object item = at.item;
                at = at.next;
                return item;
            }
        };
    }
}

class Pair {
    private final Object[] items = new Object[2];

    static Pair of(Object left, Object right) {
        Pair pair = new Pair();
        pair.items[0] = left;
        pair.items[1] = right;
        return pair;
    }

    Object get(boolean left) { return items[left ? 0 : 1]; }
}

class Missing extends RuntimeException {
    final Object what;

    Missing(Object what) { this.what = what; }
}

class Registry {
    static Object last = "none";
    private final Chain all = new Chain();

    void note(Object shape) {
        all.add(shape);
        last = shape;
    }

    Object any() { return all.first(); }
}

class Factory {
    static Shape make(int kind) {
        switch (kind) {
            case 0: return new Circle();
            case 1: return new Square();
            default: return new Group();
        }
    }

    static Object same(Object given) { return given; }
}

class Shapes {
    static final String[][] NAMES = new String[2][3];

    public static void main(String[] arguments) {
        Chain circles = new Chain(), squares = new Chain();
        circles.add(new Circle());
        squares.add(new Square());
        Circle circle = (Circle) circles.first();
        Square square = (Square) squares.first();
        circle.label("round");
        square.label(Pair.of(circle, square));

        Group group = new Group();
        group.members.add(circle);
        group.members.add(Factory.make(arguments.length));
        group.accept(new Labels());

        Visitor visitor = arguments.length > 1 ? new Labels() : new Circles();
        Object seen = circle.accept(visitor);
        Object other = Factory.same(square).hashCode() > 0 ? square.accept(visitor) : seen;
        NAMES[0][1] = (String) circle.label();
        try {
            Object found = new Chain().first();
            System.out.println(found);
        } catch (Missing missing) {
            seen = missing.what;
        }
        System.out.println(String.valueOf(Shape.REGISTRY.any() == seen || other == null));
    }
}
