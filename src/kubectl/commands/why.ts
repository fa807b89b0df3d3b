/** kubectl why: says why an object is in its state. */
import { flag } from '#lib/flags/flags.ts'
import { string } from '#lib/flags/kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { absoluteMoment } from '../past/absolute-moment.ts'
import { escapeTerminal } from '../print/terminal-text.ts'
import { printerOf, printFlags } from '../printing.ts'

const FLAGS = {
  ...printFlags(),
  at: flag(string, '', 'Explain the state at this moment: -2m, 2026-11-18T03:00Z or rv:812. Default: now.'),
}

type WhyInvocation = Invocation<typeof FLAGS>

export const why: Command = defineCommand({
  name: 'why',
  use: '[deleted] (TYPE NAME | TYPE/NAME) [--at=MOMENT] [options]',
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

# Print the steps with the fields that they follow from
kubectl why pod/web-1 -o yaml`,
  flags: FLAGS,
  completes: 'resources',
  async run(invocation) {
    const { flags, stdout, session } = invocation
    const [client, { Reader }, { whyGone, whyObject }, { explanationText }] = await Promise.all([
      session.client(),
      import('#explain/reader.ts'),
      import('#explain/explain.ts'),
      import('#explain/text.ts'),
    ])
    const moment = momentOf(invocation)
    const reader = new Reader({ client, moment, signal: session.signal })
    const { type, name, isDeleted } = questionIn(invocation)
    const kind = await (await session.mapper()).named(type)
    const { namespace } = await session.namespace()
    const where = { ...(kind.namespaced && { namespace }), name }
    const explanation = await (isDeleted ? whyGone : whyObject)(kind, where, reader)
    if (flags.output === '') stdout.write(escapeLines(explanationText(explanation)))
    else (await printerOf(invocation, { keepOrder: true })).print(explanation as unknown as JsonObject, stdout)
  },
})

function momentOf({ flags, clock }: WhyInvocation): string | undefined {
  return flags.at === '' ? undefined : absoluteMoment('--at', flags.at, clock.now()).text
}

interface Question {
  readonly type: string
  readonly name: string
  /** The question is about the last deletion. */
  readonly isDeleted: boolean
}

function questionIn({ args }: WhyInvocation): Question {
  const isDeleted = args[0] === 'deleted'
  const names = isDeleted ? args.slice(1) : args
  const [type = '', name = '', ...rest] = names.length === 1 ? (names[0] ?? '').split('/') : names
  if (type === '' || name === '' || rest.length > 0)
    throw new KubectlError('name one object, as TYPE NAME or TYPE/NAME')
  return { type: type.toLowerCase(), name, isDeleted }
}

function escapeLines(text: string): string {
  return text.split('\n').map(escapeTerminal).join('\n')
}
