/** Reads objects of several kinds at a moment. */
import type { ServedKind } from '#client/discovery.ts'
import { inParallel } from '#lib/in-parallel.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { isForbidden, isNotFound } from '#meta/status.ts'

import type { AnyObject } from '../session/rest.ts'
import type { Session } from '../session/session.ts'
import type { FoundObject } from './differences.ts'
import { resourceOf } from './user-kinds.ts'

export interface ObjectSelection {
  readonly kinds: readonly ServedKind[]
  /** Empty: all. */
  readonly namespace: string
  /** One object of each kind. */
  readonly name?: string
  /** Kinds that the user may not list are left out with a warning. */
  readonly skipsForbidden: boolean
}

/** Requests at a time. */
export const CONCURRENCY = 8
const PAGE = 500

/** Throws StatusError. */
export async function readObjects(session: Session, selection: ObjectSelection): Promise<FoundObject[]> {
  const found = await inParallel(selection.kinds, CONCURRENCY, (kind) => readKind(session, kind, selection))
  return found.flat()
}

async function readKind(session: Session, kind: ServedKind, selection: ObjectSelection): Promise<FoundObject[]> {
  const { namespace, name, skipsForbidden } = selection
  const where = kind.namespaced ? namespace : ''
  try {
    if (name === undefined) return await listKind(session, kind, where)
    const object = await (await session.rest()).get({ kind, namespace: where, name })
    return [{ kind, object }]
  } catch (error) {
    if (name !== undefined && isNotFound(error)) return []
    if (!skipsForbidden || !isForbidden(error)) throw error
    session.warn(`${resourceOf(kind)} are left out: ${error instanceof Error ? error.message : String(error)}`)
    return []
  }
}

async function listKind(session: Session, kind: ServedKind, namespace: string): Promise<FoundObject[]> {
  const rest = await session.rest()
  const found: FoundObject[] = []
  let next: string | undefined
  do {
    const page = await rest.get({ kind, namespace }, { query: { limit: PAGE, continue: next } })
    const { items, metadata } = page as unknown as {
      readonly items?: readonly AnyObject[] | null
      readonly metadata: { readonly continue?: string }
    }
    for (const item of items ?? []) {
      found.push({ kind, object: { ...item, apiVersion: apiVersionOf(kind), kind: kind.kind } })
    }
    next = metadata.continue
  } while (next !== undefined && next !== '')
  return found
}
