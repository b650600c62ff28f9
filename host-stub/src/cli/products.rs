//! `products`: the table of products, from the code that decides what each supports.

use hcomm_aicpu::spec::thread::Engine;
use host_stub::product::{Acquire, PRODUCTS, Product, Side};
use serde::Serialize;

use super::failure::Failure;
use super::output::Output;

#[derive(Serialize)]
struct Row {
    product: &'static str,
    /// Value for `--product`.
    key: &'static str,
    soc: &'static str,
    /// Whether the document supports the copy on it.
    supported: bool,
    /// Threads of CPU_TS can be acquired, with a stream or without.
    cpu_ts_threads: bool,
    /// Threads of AICPU_TS can be acquired.
    aicpu_ts_threads: bool,
    /// The copy can be called by the host, on a thread of CPU_TS.
    host_copy: bool,
    /// The copy can be called by a kernel, on a thread of AICPU_TS.
    device_copy: bool,
}

impl Row {
    fn new(product: &Product) -> Self {
        let acquires = |function, engine| product.engine_for(function, engine).is_ok();
        let device_copy = product.may_copy(Side::Device, Engine::AICPU_TS).is_ok();
        let host_copy = product.may_copy(Side::Host, Engine::CPU_TS).is_ok();
        Self {
            product: product.name,
            key: product.key,
            soc: product.soc_name,
            supported: device_copy || host_copy,
            cpu_ts_threads: acquires(Acquire::Threads, Engine::CPU_TS) && acquires(Acquire::WithStream, Engine::CPU_TS),
            aicpu_ts_threads: acquires(Acquire::Threads, Engine::AICPU_TS),
            host_copy,
            device_copy,
        }
    }
}

#[derive(Serialize)]
struct Answer {
    products: Vec<Row>,
}

pub fn run(output: Output) -> Result<(), Failure> {
    let answer = Answer { products: PRODUCTS.iter().map(Row::new).collect() };
    output.answer(&answer, |out| {
        let mark = |yes| if yes { "yes" } else { "-" };
        writeln!(
            out,
            "{:<20} {:<20} {:<13} {:<9} {:<7} {:<9} {:<10} device copy",
            "product", "--product", "soc", "supported", "CPU_TS", "AICPU_TS", "host copy"
        )?;
        answer.products.iter().try_for_each(|row| {
            writeln!(
                out,
                "{:<20} {:<20} {:<13} {:<9} {:<7} {:<9} {:<10} {}",
                row.product,
                row.key,
                row.soc,
                mark(row.supported),
                mark(row.cpu_ts_threads),
                mark(row.aicpu_ts_threads),
                mark(row.host_copy),
                mark(row.device_copy)
            )
        })
    })
}
