/** `hyperkube build up` and `build plan`. */
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf } from '#lib/flags/kinds.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { stepsOf } from '#provision/step.ts'

import { bringUp, planFor } from './bring.ts'
import { BUILD_FLAGS, CERTIFICATE_FLAGS } from './flags.ts'
import { planText, sayTo } from './progress.ts'
import { openSession } from './session.ts'

const RUN_FLAGS = {
  'update-only': flag(bool, false, 'leave etcd and the control plane alone'),
  'disable-port-check': flag(bool, false, 'do not check whether machines reach each other'),
  ...CERTIFICATE_FLAGS,
}

export const up: Program = defineProgram({
  name: 'up',
  long:
    'up makes a cluster of the machines that cluster.yml names, or makes it what the file says now. Machines that the file no longer ' +
    'names leave the cluster, and become what they were. What is as it should be is left alone, and what was interrupted is finished by ' +
    'running it again.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      init: flag(bool, false, 'only make certificates and write the state'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const began = clock.elapsed()
    const say = sayTo(flags, stdout)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    if (flags.init) {
      await session.begin(session.stage, session.restoring)
      return 0
    }
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const done = await bringUp(session, options, { say, isDebug: flags.debug || flags.trace, clock, signal })
    const seconds = ((clock.elapsed() - began) / 1000).toFixed(1)
    say(
      done === 0
        ? `Nothing to do: everything is as it should be (${seconds} s).`
        : `Done: ${done} steps in ${seconds} s.`,
    )
    say(`The cluster is reached with ${session.files.kubeconfig}.`)
    return 0
  },
})

export const plan: Program = defineProgram({
  name: 'plan',
  long: 'plan shows what up would do, and changes nothing on any machine.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      output: flag(oneOf('text', 'json'), 'text', 'how it is written: text or json', { shorthand: 'o' }),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession({ ...context, flags, stdout, stderr, clock, say }, closing, signal)
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const found = await planFor(session, await session.desired(session.stage), options, clock)
    const later = session.stages.length - 1
    const notes = [...found.notes, ...(later === 0 ? [] : [`${later} more rounds of certificates or keys will follow`])]
    const steps = stepsOf(found).map(({ host, describe, action: { type } }) => ({ host, type, describe }))
    const text =
      flags.output === 'json'
        ? `${JSON.stringify({ steps, faults: found.faults, notes }, undefined, 2)}\n`
        : planText({ ...found, notes })
    stdout.write(text)
    return found.faults.length === 0 ? 0 : 1
  },
})
