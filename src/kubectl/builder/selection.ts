/** Selects the objects of a command from files or arguments and calls back for each. */
import { select, type Selection } from './builder.ts'
import type { Files, SelectOptions } from './select-options.ts'

/** `flags` may include the file flags. */
export type SelectingInvocation = Pick<SelectOptions, 'session'> &
  SelectOptions['io'] & { readonly flags: object & Files }

/** A failure of one object does not stop the others. */
export async function selectFor(
  invocation: SelectingInvocation,
  more: Partial<SelectOptions> = {},
): Promise<Selection> {
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
