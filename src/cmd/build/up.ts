/** `hyperkube build up` and `build plan`: build or change a cluster, or print the plan of the changes. */
import { flag } from '#lib/flags/flags.ts'
import { bool, oneOf } from '#lib/flags/kinds.ts'
import { defineProgram, type Program } from '#lib/program.ts'
import { converge } from '#provision/builder/converge.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { viewPlan } from '#provision/builder/plan-view.ts'
import { sayTo } from '#provision/builder/progress.ts'

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
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdout, stderr, clock, say }),
      closing,
      signal,
    )
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
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdout, stderr, clock, say }),
      closing,
      signal,
    )
    const options = { checksPorts: !flags['disable-port-check'], workersOnly: flags['update-only'] }
    const { text, ...found } = await viewPlan(session, options, clock)
    stdout.write(flags.output === 'json' ? `${JSON.stringify(found, undefined, 2)}\n` : text)
    return found.faults.length === 0 ? 0 : 1
  },
})
