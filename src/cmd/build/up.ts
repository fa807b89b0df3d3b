/** `hyperkube build up` and `build plan`: build or change a cluster, or print the plan of the changes. */
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf } from '#lib/flags/kinds.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { converge, planFor } from '#provision/builder/converge.ts'
import { planText, sayTo } from '#provision/builder/progress.ts'
import { openSession } from '#provision/builder/session.ts'
import { stepsOf } from '#provision/plan/step.ts'

import { BUILD_FLAGS, CERTIFICATE_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

const RUN_FLAGS = {
  'update-only': flag(bool, false, 'skip etcd and the control plane'),
  'disable-port-check': flag(bool, false, 'skip the check of connections between machines'),
  ...CERTIFICATE_FLAGS,
}

export const up: Program = defineProgram({
  name: 'up',
  long:
    'up creates a cluster on the machines in cluster.yml, or updates it to the current file. Machines that the file no longer ' +
    'contains leave the cluster and are restored. up changes only what differs, and a second run finishes an ' +
    'interrupted one.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      init: flag(bool, false, 'only create certificates and write the state file'),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const began = clock.elapsed()
    const say = sayTo(flags, stdout)
    const session = await openSession(withKubectl({ ...context, flags, stdout, stderr, clock, say }), closing, signal)
    if (flags.init) {
      await session.begin(session.stage, session.restoring)
      return 0
    }
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const done = await converge(session, options, { say, isDebug: flags.debug || flags.trace, clock, signal })
    const seconds = ((clock.elapsed() - began) / 1000).toFixed(1)
    say(
      done === 0 ? `Nothing to do: the cluster is up to date (${seconds} s).` : `Done: ${done} steps in ${seconds} s.`,
    )
    say(`Use the cluster with ${session.files.kubeconfig}.`)
    return 0
  },
})

export const plan: Program = defineProgram({
  name: 'plan',
  long: 'plan shows the steps of up and changes nothing.',
  flags: {
    build: {
      ...BUILD_FLAGS,
      ...RUN_FLAGS,
      output: flag(oneOf('text', 'json'), 'text', 'output format: text or json', { shorthand: 'o' }),
    },
  },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openSession(withKubectl({ ...context, flags, stdout, stderr, clock, say }), closing, signal)
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const found = await planFor(session, await session.desired(session.stage), options, clock)
    const later = session.stages.length - 1
    const notes = [
      ...found.notes,
      ...(later === 0 ? [] : [`${later} further stages of certificates or keys will follow`]),
    ]
    const steps = stepsOf(found).map(({ host, describe, action: { type } }) => ({ host, type, describe }))
    const text =
      flags.output === 'json'
        ? `${JSON.stringify({ steps, faults: found.faults, notes }, undefined, 2)}\n`
        : planText({ ...found, notes })
    stdout.write(text)
    return found.faults.length === 0 ? 0 : 1
  },
})
