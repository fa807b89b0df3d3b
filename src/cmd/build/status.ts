/** `hyperkube build status`: prints the state of machines and nodes. */
import { defineProgram, type Program } from '#lib/program.ts'
import { observeCluster } from '#provision/apply/observe.ts'
import { openOperatorSession } from '#provision/builder/operator-session.ts'
import { sayTo } from '#provision/builder/progress.ts'
import type { DesiredHost } from '#provision/desired.ts'
import type { Observed } from '#provision/plan/observed.ts'

import { BUILD_FLAGS } from './flags.ts'
import { withKubectl } from './kubectl-runner.ts'

export const status: Program = defineProgram({
  name: 'status',
  long: 'status shows for each machine of a cluster whether it is reachable, which services run and whether its node is ready.',
  flags: { build: BUILD_FLAGS },
  async run({ flags, stdout, stderr, clock, ...context }, signal) {
    await using closing = new AsyncDisposableStack()
    const say = sayTo(flags, stderr)
    const session = await openOperatorSession(
      withKubectl({ ...context, flags, stdout, stderr, clock, say }),
      closing,
      signal,
    )
    const { connections, api, stage } = session
    const wanted = await session.desired(stage)
    const reach = (name: string): ReturnType<typeof connections.reach> => connections.reach(name)
    const observed = await observeCluster(wanted, { reach, api, clock })
    const rows = [['MACHINE', 'ROLES', 'STATE', 'NODE', 'SERVICES'], ...wanted.hosts.map((host) => row(host, observed))]
    const widths = rows[0]?.map((_, at) => Math.max(...rows.map((each) => each[at]?.length ?? 0))) ?? []
    for (const each of rows)
      stdout.write(
        `${each
          .map((cell, at) => cell.padEnd(widths[at] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
      )
    return rows.every((each) => each[2] !== 'unreachable') ? 0 : 1
  },
})

function row({ name, roles, services }: DesiredHost, { hosts, nodes }: Observed): string[] {
  const found = hosts.get(name)
  const node = nodes?.get(name)
  const ready = node === undefined ? 'none' : node.isReady ? 'Ready' : 'NotReady'
  const shown = services.map(({ spec }) => {
    const state = found?.state === 'seen' ? found.seen.services[spec.name] : undefined
    return state?.isRunning === true ? spec.name : `${spec.name} (${state === undefined ? 'missing' : 'stopped'})`
  })
  const isSeen = found?.state === 'seen'
  return [name, roles.join(','), found?.state ?? 'unknown', ready, isSeen ? shown.join(' ') : '']
}
