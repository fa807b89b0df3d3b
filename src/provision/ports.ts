/** Which machine must reach which port of which other: the planes' own ports, from those that use them. Pure. */
import type { DesiredCluster, DesiredHost, Plane } from './desired.ts'
import type { PortCheck } from './step.ts'

/** Who uses what of whom. */
const USES: readonly { readonly from: Plane; readonly to: Plane; readonly ports: readonly number[] }[] = [
  { from: 'etcd', to: 'etcd', ports: [2379, 2380] },
  { from: 'controlplane', to: 'etcd', ports: [2379] },
  { from: 'controlplane', to: 'worker', ports: [10_250] },
  { from: 'worker', to: 'controlplane', ports: [6443] },
]

/** Each once, and none of a machine to itself. Only those that a new machine has to do with: the others are at work. */
export function portChecks({ hosts }: Pick<DesiredCluster, 'hosts'>, isNew: (name: string) => boolean): PortCheck[] {
  const having = (role: Plane): DesiredHost[] => hosts.filter(({ roles }) => roles.includes(role))
  const checks = USES.flatMap(({ from, to, ports }) =>
    having(from).flatMap((source) =>
      having(to)
        .filter((target) => source !== target && (isNew(source.name) || isNew(target.name)))
        .flatMap(({ name, address }) => ports.map((port) => ({ from: source.name, to: name, address, port }))),
    ),
  )
  return [...new Map(checks.map((check) => [`${check.from} ${check.to} ${check.port}`, check])).values()]
}
