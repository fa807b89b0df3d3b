/** Waiting for one object, as every command does that waits: over lost connections, for so long, and until it is interrupted. */
import { until, UntilTimeout } from '#client/until.ts'

import { KubectlError } from '../errors.ts'
import { interruptible } from '../interruption.ts'
import type { AnyObject } from '../rest.ts'
import type { Info } from '../selecting.ts'
import type { Session } from '../session.ts'

export interface Patience {
  /** None: as long as it takes. */
  readonly timeoutMs?: number | undefined
  /** What is said when it took longer. */
  readonly late: string
}

/** Upstream's words for what did not come to be in time. */
export const LATE = 'timed out waiting for the condition'

/** The first state that is as it should be, undefined when that is to be gone. Throws KubectlError, or what `isSo` throws. */
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

/** The same words about one object. */
export function lateFor({ kind, name }: Pick<Info, 'kind' | 'name'>): string {
  return `${LATE} on ${kind.plural}/${name}`
}
