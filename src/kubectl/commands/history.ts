/** kubectl history: lists the changes of an object, of its present and its deleted versions. */
import { pathOf } from '#client/api-client.ts'
import type { ServedKind } from '#client/discovery.ts'
import { flag } from '#lib/flags/flags.ts'
import { int, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import type { KubeObject } from '#meta/object.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { KubectlError } from '../errors.ts'
import { type HistoryRow, historyRows, type ListedChange } from '../history/history-rows.ts'
import { TabWriter } from '../print/tabs.ts'
import { escapeTerminal } from '../print/terminal-text.ts'
import { printerOf, printFlags } from '../printing.ts'

const FLAGS = {
  ...printFlags(),
  from: flag(
    string,
    '',
    'Show changes after this moment: -2h, 2026-11-18T03:00Z or rv:812. Default: all that the server keeps.',
  ),
  to: flag(string, '', 'Show changes up to this moment. Default: now.'),
  fields: flag(strings, [], 'Show only changes of these fields and of what is below them, such as spec.'),
  limit: flag(int, 500, 'Show at most so many changes, the newest.'),
}

const NOTHING = '<none>'

/** The kind ChangeList of the server. */
interface ChangeList {
  readonly omitted: number
  readonly items: readonly ListedChange[]
  readonly from: { readonly resourceVersion: string; readonly time?: string }
}

export const history: Command = defineCommand({
  name: 'history',
  use: '(TYPE NAME | TYPE/NAME) [--fields=spec] [--from=MOMENT] [--to=MOMENT] [options]',
  long:
    'List the changes of an object: when, by whom, which fields, and because of which changes of other objects. ' +
    'Deleted objects have a history too.',
  examples: `# List the changes of a deployment
kubectl history deployment/web

# List the changes of its spec in the last two minutes
kubectl history deployment/web --fields spec --from -2m

# Print every version of a deleted pod
kubectl history pod/web-1 -o yaml`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, stdout, stderr } = invocation
    const { kind, name } = await objectOf(invocation)
    const list = await changesOf(invocation, kind, name)
    if (flags.output !== '') {
      const printer = await printerOf(invocation, { keepOrder: true })
      printer.print(list as unknown as JsonObject, stdout)
      return
    }
    const rows = historyRows(list.items, flags.fields)
    if (list.omitted > 0) stderr.write(`${list.omitted} older changes are not shown; --limit shows more.\n`)
    if (rows.length === 0) {
      const since = list.from.time === undefined ? '' : ` since ${list.from.time}`
      stderr.write(`No changes of ${kind.plural}/${name}${since}.\n`)
      return
    }
    stdout.write(tableOf(rows))
  },
})

type HistoryInvocation = Invocation<typeof FLAGS>

async function objectOf({ args, session }: HistoryInvocation): Promise<{ kind: ServedKind; name: string }> {
  const [type = '', name = '', ...rest] = args.length === 1 ? (args[0] ?? '').split('/') : args
  if (type === '' || name === '' || rest.length > 0)
    throw new KubectlError('name one object, as TYPE NAME or TYPE/NAME')
  return { kind: await (await session.mapper()).named(type.toLowerCase()), name }
}

async function changesOf({ flags, session }: HistoryInvocation, kind: ServedKind, name: string): Promise<ChangeList> {
  const { namespace } = await session.namespace()
  const range = encodeURIComponent(`${flags.from || 'rv:0'}..${flags.to}`)
  const path = pathOf(kind, { namespace: kind.namespaced ? namespace : '', name })
  const rest = await session.rest()
  const list = await rest.json<Partial<ChangeList> & KubeObject>(`/past/${range}${path}?limit=${flags.limit}`)
  if (list.kind !== 'ChangeList') throw new KubectlError('the server keeps no past: only hyperkube serves it')
  return list as unknown as ChangeList
}

function tableOf(rows: readonly HistoryRow[]): string {
  const table = new TabWriter()
  const hasCauses = rows.some(({ because }) => because !== '')
  table.write(`TIME\tVERSION\tWHO\tCHANGE${hasCauses ? '\tBECAUSE OF' : ''}\n`)
  for (const { time, version, who, change, because } of rows) {
    const cells = [time, version, who, change, ...(hasCauses ? [because || NOTHING] : [])]
    table.write(`${cells.map(escapeTerminal).join('\t')}\n`)
  }
  return table.flush()
}
