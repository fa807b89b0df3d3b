/** What a command is about, as nearly all of them ask: files or arguments, in the namespace of the session, one object after the other. */
import { select, type Selection } from './builder.ts'
import type { Selecting } from './selecting.ts'

/** `flags` may hold those of files. */
export type SelectingInvocation = Pick<Selecting, 'session'> &
  Selecting['io'] & { readonly flags: NonNullable<Selecting['files']> }

/** What is wrong with one of them does not stop the others. */
export async function selectFor(invocation: SelectingInvocation, more: Partial<Selecting> = {}): Promise<Selection> {
  const { flags, session } = invocation
  const { namespace, isExplicit } = await session.namespace()
  return select({
    session,
    io: invocation,
    continueOnError: true,
    namespace,
    requireNamespace: isExplicit,
    files: flags,
    flatten: true,
    ...more,
  })
}
