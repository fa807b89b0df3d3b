/**
 * `hyperkube machine serve`: executes the calls of `hyperkube build` on a machine. `hyperkube machine keep`:
 * supervises services on machines without systemd.
 */
import { fileURLToPath } from 'node:url'

import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import { LOG_FLAGS } from '#lib/log/flags.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { runKeeper } from '#provision/machines/keeper.ts'
import { localMachine } from '#provision/machines/local.ts'
import { serveMachine } from '#provision/machines/serve.ts'

const HOME = flag(string, '/opt/hyperkube', "`folder` of the builder's files on this machine")

export const serve: Program = defineProgram({
  name: 'serve',
  long: 'serve executes requests from standard input on this machine until the input ends.',
  flags: { machine: { home: HOME } },
  async run({ flags, stdin, stdout, clock, env }) {
    await using closing = new AsyncDisposableStack()
    const program = fileURLToPath(new URL('../../../bin/hyperkube', import.meta.url))
    const keeper = [program, 'machine', 'keep', '--home', flags.home]
    const machine = await localMachine({ home: flags.home, keeper, clock, env }, closing)
    await serveMachine(machine, stdin(), stdout)
    return 0
  },
})

export const keep: Program = defineProgram({
  name: 'keep',
  long: 'keep starts the services of this machine, restarts those that end, and takes orders from "machine serve".',
  flags: { machine: { home: HOME }, logs: LOG_FLAGS },
  async run({ flags, clock, random, log, env }, signal) {
    await runKeeper({ home: flags.home, clock, random, log, env }, signal)
    return 0
  },
})
