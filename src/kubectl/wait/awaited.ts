/** Waits for one object across lost connections, with a timeout and until interrupted. */
import { until, UntilTimeout } from '#client/until.ts'

import type { Info } from '../builder/select-options.ts'
import { KubectlError } from '../errors.ts'
import { interruptible } from '../interruption.ts'
import type { AnyObject } from '../session/rest.ts'
import type { Session } from '../session/session.ts'

export interface Patience {
  /** Undefined means no limit. */
  readonly timeoutMs?: number | undefined
  /** The error text after the timeout. */
  readonly late: string
}

/** Upstream's text for a timeout. */
export const LATE = 'timed out waiting for the condition'

/** The first matching state; undefined for a deleted object. Throws KubectlError, or errors of `isSo`. */
export async function awaited(
  session: Session,
  { kind, namespace, name }: Pick<Info, 'kind' | 'namespace' | 'name'>,
  { timeoutMs, late }: Patience,
  isSo: (object: AnyObject | undefined) => boolean,
): Promise<AnyObject | undefined> {
  const { signal } = session
  const options = {
    client: await session.client(),
    kind,
    name,
    signal,
    ...(namespace !== '' && { namespace }),
    ...(timeoutMs !== undefined && { timeoutMs: Math.max(0, timeoutMs) }),
  }
  try {
    const found = await interruptible(signal, () => until(options, (object) => isSo(object as AnyObject | undefined)))
    return found as AnyObject | undefined
  } catch (error) {
    throw error instanceof UntilTimeout ? new KubectlError(late, { cause: error }) : error
  }
}

/** The timeout text for one object. */
export function lateFor({ kind, name }: Pick<Info, 'kind' | 'name'>): string {
  return `${LATE} on ${kind.plural}/${name}`
}
