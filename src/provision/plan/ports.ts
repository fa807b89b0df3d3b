/** Lists the connections that the machines of a cluster need: ports and their clients. Pure. */
import type { DesiredCluster, DesiredHost, Plane } from '../desired.ts'
import type { PortCheck } from './step.ts'

/** The clients of each port. */
const USES: readonly { readonly from: Plane; readonly to: Plane; readonly ports: readonly number[] }[] = [
  { from: 'etcd', to: 'etcd', ports: [2379, 2380] },
  { from: 'controlplane', to: 'etcd', ports: [2379] },
  { from: 'controlplane', to: 'worker', ports: [10_250] },
  { from: 'worker', to: 'controlplane', ports: [6443] },
]

/** Distinct, without connections of a machine to itself, and only those of new machines. */
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
