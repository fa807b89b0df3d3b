/** Prints the plan of an undo and carries it out with ordinary requests. */
import type { Writable } from 'node:stream'

import type { ServedKind } from '#client/discovery.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { isAlreadyExists, isConflict } from '#meta/status.ts'

import { asError, messageOf } from '../errors.ts'
import { escapeTerminal } from '../print/terminal-text.ts'
import type { Rest } from '../session/rest.ts'
import { CONCURRENCY } from './moment-objects.ts'
import type { PlannedUndo } from './undo-search.ts'
import { restoredObject } from './user-fields.ts'
import { resourceOf } from './user-kinds.ts'

const FIELD_MANAGER = 'kubectl-undo'

/** One line. */
export function planLine(planned: PlannedUndo): string {
  const { action, note } = planned.step
  return escapeTerminal(`${action.padEnd(6)}  ${labelOf(planned)}${note === '' ? '' : `: ${note}`}`)
}

/** `deployment.apps/web`. */
function labelOf({ kind, name }: Pick<PlannedUndo, 'kind' | 'name'>): string {
  const type = kind.kind.toLowerCase()
  return `${kind.group === '' ? type : `${type}.${kind.group}`}/${name}`
}

/** Objects that start pods come after those that pods use; deletions come last. */
const ORDER = ['namespaces', 'others', 'workloads', 'deletions'] as const

export function orderOf({ kind, step }: PlannedUndo): (typeof ORDER)[number] {
  if (step.action === 'delete') return 'deletions'
  if (resourceOf(kind) === 'namespaces') return 'namespaces'
  return WORKLOADS.has(resourceOf(kind)) ? 'workloads' : 'others'
}

const WORKLOADS: ReadonlySet<string> = new Set([
  'deployments.apps',
  'statefulsets.apps',
  'daemonsets.apps',
  'replicasets.apps',
  'replicationcontrollers',
  'jobs.batch',
  'cronjobs.batch',
])

export interface UndoOutput {
  readonly stdout: Writable
  readonly stderr: Writable
}

/** The number of objects that failed; their errors are printed. */
export async function carryOut(rest: Rest, plan: readonly PlannedUndo[], output: UndoOutput): Promise<number> {
  let failed = 0
  const one = async (planned: PlannedUndo): Promise<void> => {
    const label = labelOf(planned)
    try {
      output.stdout.write(escapeTerminal(`${label} ${await act(rest, planned)}\n`))
    } catch (error) {
      failed++
      const message =
        isConflict(error) && !isAlreadyExists(error) ? 'it has changed since it was read' : messageOf(asError(error))
      output.stderr.write(escapeTerminal(`error: ${label}: ${message}\n`))
    }
  }
  for (const part of ORDER) {
    await inParallel(
      plan.filter((planned) => orderOf(planned) === part),
      CONCURRENCY,
      one,
    )
  }
  return failed
}

/** The past participle for the output. */
async function act(rest: Rest, { kind, namespace, name, step }: PlannedUndo): Promise<string> {
  const query = { fieldManager: FIELD_MANAGER }
  switch (step.action) {
    case 'create': {
      await rest.create({ kind, namespace }, step.object, query).catch((error: unknown) => {
        if (!isDefaultAccount(kind, name) || !isAlreadyExists(error)) throw error
        return replaceDefault(rest, { kind, namespace, name, step })
      })
      return 'created'
    }
    case 'change': {
      await rest.replace({ kind, namespace, name }, step.object, query)
      return 'changed'
    }
    case 'delete': {
      const { uid, resourceVersion } = step.object.metadata
      await rest.delete({ kind, namespace, name }, { preconditions: { uid, resourceVersion } })
      return 'deleted'
    }
    default:
      return 'left unchanged'
  }
}

/** A controller creates it in each new namespace, perhaps earlier than undo. */
function isDefaultAccount(kind: ServedKind, name: string): boolean {
  return resourceOf(kind) === 'serviceaccounts' && name === 'default'
}

async function replaceDefault(rest: Rest, { kind, namespace, name, step }: PlannedUndo): Promise<void> {
  if (step.action !== 'create') return
  const target = { kind, namespace, name }
  const now = await rest.get(target)
  await rest.replace(target, restoredObject(kind, step.object, now), { fieldManager: FIELD_MANAGER })
}
