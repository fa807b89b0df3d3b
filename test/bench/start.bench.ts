/** Benchmarks the start of each program, which every call of kubectl pays for. */
import { spawn } from 'node:child_process'
import { performance } from 'node:perf_hooks'
import { fileURLToPath } from 'node:url'

import { type Bench, quantile } from './bench.ts'
import { figure } from './table.ts'

const ROUNDS = 15
/** The first start finds cold caches; it is not what people wait for all day. */
const WARM_UPS = 2

const hyperkube = fileURLToPath(new URL('../../bin/hyperkube', import.meta.url))

const commands: readonly (readonly [name: string, file: string, args: readonly string[]])[] = [
  ['node -e 0', process.execPath, ['-e', '0']],
  ['hyperkube --version', hyperkube, ['--version']],
  ['hyperkube codec --help', hyperkube, ['codec', '--help']],
]

export const bench: Bench = {
  about: `start of the program over a bare node; ${WARM_UPS} warm-ups, then ${ROUNDS} starts of each in turn`,
  async run() {
    const samples: number[][] = commands.map(() => [])
    for (let round = -WARM_UPS; round < ROUNDS; round++) {
      for (const [index, [, file, args]] of commands.entries()) {
        const tookMs = await timeStart(file, args)
        if (round >= 0) samples[index]?.push(tookMs)
      }
    }
    const bareMs = quantile(samples[0] ?? [], 0.5)
    const rows = commands.map(([name], index) => {
      const own = samples[index] ?? []
      const medianMs = quantile(own, 0.5)
      return [name, figure(medianMs), figure(quantile(own, 0.9)), figure(medianMs - bareMs)]
    })
    return [{ title: 'starts', columns: ['', 'median ms', 'p90 ms', 'over bare node ms'], rows }]
  },
}

function timeStart(file: string, args: readonly string[]): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const child = spawn(file, args, { stdio: 'ignore' })
    child.on('error', reject)
    child.on('exit', (code) => {
      if (code === 0) resolve(performance.now() - start)
      else reject(new Error(`"${file} ${args.join(' ')}" ended with ${code}`))
    })
  })
}
