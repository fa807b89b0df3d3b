/** Machines whose agents have registered and that the cluster file does not have yet, with buttons that add them. */
import type { VNode } from 'preact'

import { useLive } from '../objects/live.ts'
import { buildRoute } from '../operations/operation-requests.ts'
import { type MachineDraft, namesIn } from './cluster-file.ts'
import { draftOf, type Machine, sortMachines } from './machines.ts'

export interface RegisteredMachinesProps {
  readonly cluster: string
  /** Of the cluster file. */
  readonly text: string
  readonly add: (machine: MachineDraft) => void
}

export function RegisteredMachines({ cluster, text, add }: RegisteredMachinesProps): VNode | null {
  const { objects } = useLive(buildRoute(cluster, 'machines'))
  const known = new Set(namesIn(text))
  const others = sortMachines(objects as readonly Machine[]).filter(({ spec }) => !known.has(spec.nodeName))
  if (others.length === 0) return null
  return (
    <div class="box spaced">
      <p>Machines that have registered and are not in the file:</p>
      <div class="yaml-bar">
        {others.map((machine) => (
          <button key={machine.metadata.name} type="button" onClick={() => add(draftOf(machine))}>
            {`Add ${machine.spec.nodeName} to the file`}
          </button>
        ))}
      </div>
    </div>
  )
}
