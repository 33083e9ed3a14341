create table orders (
    id int primary key,
    customer text not null,
    total numeric not null,
    day date,
    at timestamptz not null,
    numbers int[],
    "unit price" float8,
    note jsonb
);
create table customers (town text, name text, count int not null, primary key (name, town));
