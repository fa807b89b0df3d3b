/** kubectl why: says why an object is in its state. */
import type { Explanation } from '#explain/explanation.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation, usageError } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { escapeTerminal } from '../print/terminal-text.ts'
import { printerOf, printFlags } from '../printing.ts'

const FLAGS = {
  ...printFlags(),
  at: flag(string, '', 'Explain the state at this moment: -2m, 2026-11-18T03:00Z or rv:812. Default: now.'),
  subresource: flag(string, '', 'With can-i: the subresource, such as log.'),
  'all-namespaces': flag(bool, false, 'With can-i: the action in all namespaces.', { shorthand: 'A' }),
}

type WhyInvocation = Invocation<typeof FLAGS>

export const why: Command = defineCommand({
  name: 'why',
  use: '([deleted] (TYPE NAME | TYPE/NAME) [--at=MOMENT] | can-i VERB TYPE[/NAME]) [options]',
  long:
    'say why an object is in its state: why a pod is Pending or a claim is not bound. kubectl reads objects with your ' +
    'credentials and repeats the decisions of Kubernetes on them. It answers "not known" if an object that matters ' +
    'cannot be read.',
  examples: `# Say why a pod is Pending, and what would help
kubectl why pod/web-1

# Say who or what deleted a pod
kubectl why deleted pod/web-1

# The same for the state of two minutes ago
kubectl why pod/web-1 --at -2m

# Say why a user may not create pods, and which role would allow it
kubectl why can-i create pods --as jane -n shop

# Print the steps with the fields that they follow from
kubectl why pod/web-1 -o yaml`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { flags, stdout } = invocation
    const { explanationText } = await import('#explain/text.ts')
    const isAboutAccess = invocation.args[0] === 'can-i'
    const explanation = await (isAboutAccess ? explainAccess(invocation) : explainObject(invocation))
    if (flags.output === '') stdout.write(escapeLines(explanationText(explanation)))
    else (await printerOf(invocation, { keepOrder: true })).print(explanation as unknown as JsonObject, stdout)
  },
})

async function explainObject({ args, session }: WhyInvocation): Promise<Explanation> {
  const [{ Reader }, questions] = await Promise.all([import('#explain/reader.ts'), import('#explain/explain.ts')])
  const isDeleted = args[0] === 'deleted'
  const { type, name } = namesIn(isDeleted ? args.slice(1) : args)
  const reader = new Reader({ client: await session.present.client(), moment: session.moment, signal: session.signal })
  const kind = await (await session.mapper()).named(type)
  const { namespace } = await session.namespace()
  const where = { ...(kind.namespaced && { namespace }), name }
  return isDeleted ? questions.whyGone(kind, where, reader) : questions.whyObject(kind, where, reader)
}

/** The asker reads with their own rights; `--as` names the user of the question. */
async function explainAccess(invocation: WhyInvocation): Promise<Explanation> {
  const [{ Reader }, questions] = await Promise.all([import('#explain/reader.ts'), import('#explain/explain.ts')])
  const { args, flags, session } = invocation
  if (flags.at !== '') throw new KubectlError('can-i has no --at: rights of the past cannot be reviewed')
  const [, verb = '', what = '', ...rest] = args
  if (verb === '' || what === '' || rest.length > 0)
    throw usageError(invocation, 'Give a verb and a resource, as in "why can-i create pods"')
  const [type = '', name = ''] = what.split('/')
  const kind = await (await session.mapper()).named(type.toLowerCase())
  const { namespace } = await session.namespace()
  const own = session.withoutImpersonation()
  try {
    const access = {
      verb,
      resource: kind.plural,
      group: kind.group,
      namespace: kind.namespaced && !flags['all-namespaces'] ? namespace : '',
      subresource: flags.subresource,
      name,
    }
    const user = { name: flags.as, groups: flags['as-group'] }
    const reader = new Reader({ client: await own.client(), signal: session.signal })
    return await questions.whyForbidden({ access, ...(flags.as !== '' && { user }) }, reader)
  } finally {
    await own.close()
  }
}

function namesIn(args: readonly string[]): { readonly type: string; readonly name: string } {
  const [type = '', name = '', ...rest] = args.length === 1 ? (args[0] ?? '').split('/') : args
  if (type === '' || name === '' || rest.length > 0)
    throw new KubectlError('name one object, as TYPE NAME or TYPE/NAME')
  return { type: type.toLowerCase(), name }
}

function escapeLines(text: string): string {
  return text.split('\n').map(escapeTerminal).join('\n')
}
