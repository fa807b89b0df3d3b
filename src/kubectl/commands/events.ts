/** kubectl events: lists recent events in order, for a namespace or for one object. */
import type { Event } from '#apis/core/v1.ts'
import type { ServedKind } from '#client/discovery.ts'
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'
import { strings } from '#lib/flags/list-kinds.ts'
import type { JsonObject } from '#lib/json/value.ts'
import { ageText } from '#meta/duration.ts'
import { apiVersionOf } from '#meta/kind.ts'
import { epochMsOf } from '#meta/time.ts'

import { type Command, defineCommand, type Invocation } from '../command.ts'
import { ExitError, KubectlError } from '../errors.ts'
import { ALL_NAMESPACES_FLAG, CHUNK_FLAG } from '../flag-sets.ts'
import { interruptible } from '../interruption.ts'
import { AT_FLAG } from '../past/moment-flags.ts'
import type { Output } from '../print/printer.ts'
import { TabWriter } from '../print/tabs.ts'
import { escapeTerminal } from '../print/terminal-text.ts'
import { printerOf, printFlags } from '../printing.ts'
import { listAll, resourcePath } from '../related-objects.ts'

const FLAGS = {
  ...AT_FLAG,
  ...printFlags(),
  ...ALL_NAMESPACES_FLAG,
  ...CHUNK_FLAG,
  for: flag(string, '', 'Show only events of this object, as TYPE/NAME.'),
  'no-headers': flag(bool, false, 'Omit the header line of the table.'),
  types: flag(strings, [], 'Show only events of these types: Normal, Warning.'),
  watch: flag(bool, false, 'After listing the events, watch for more.', { shorthand: 'w' }),
}

type EventsInvocation = Invocation<typeof FLAGS>

export const events: Command = defineCommand({
  name: 'events',
  use: '[(-o|--output=)json|yaml|kyaml|name|go-template|go-template-file|template|templatefile|jsonpath|jsonpath-as-json|jsonpath-file] [--for TYPE/NAME] [--watch] [--types=Normal,Warning] [options]',
  long: 'List events of a namespace, of all namespaces or of one object.',
  examples: `# List events of the namespace
kubectl events

# List events of a pod and watch for more
kubectl events --for pod/web-pod-13je7 --watch

# List only warnings
kubectl events --types=Warning`,
  flags: FLAGS,
  async run(invocation) {
    const { flags, session, stdout, stderr, clock, signal } = invocation
    const { namespace } = await session.namespace()
    const fieldSelector = await selectorOf(invocation)
    const isTable = flags.output === ''
    const whole = isTable ? undefined : await printerOf(invocation, { keepOrder: true })
    if (flags.types.some((type) => !['normal', 'warning'].includes(type.toLowerCase()))) {
      throw new KubectlError('valid --types are Normal or Warning')
    }
    const where = flags['all-namespaces'] ? '' : namespace
    const table = new EventTable(invocation)
    if (flags.watch) return interruptible(signal, () => watchEvents(invocation, { where, fieldSelector, table }))
    const rest = await session.rest()
    const all = await listAll<Event>(rest, resourcePath('v1/events', where), 500, { fields: fieldSelector })
    const found = all.filter((event) => isAmong(flags.types, event))
    if (found.length === 0) {
      stderr.write(where === '' ? 'No events found.\n' : `No events found in ${namespace} namespace.\n`)
      return
    }
    // A stable sort keeps the order of events with equal times.
    const sorted = [...found].sort((one, other) => timeOfEvent(one) - timeOfEvent(other))
    // Upstream's name printer rejects this list silently.
    if (flags.output === 'name') return
    if (whole !== undefined) {
      const list = { kind: 'EventList', apiVersion: 'v1', metadata: {}, items: sorted }
      whole.print(list as unknown as JsonObject, stdout)
      return
    }
    for (const event of sorted) table.add(event, clock.now())
    table.flush(stdout)
  },
})

function isAmong(types: readonly string[], { type = '' }: Event): boolean {
  return types.length === 0 || types.some((one) => one.toLowerCase() === type.toLowerCase())
}

async function selectorOf({ flags, session }: EventsInvocation): Promise<string> {
  if (flags.for === '') return ''
  const [type = '', name, ...rest] = flags.for.split('/')
  if (name === undefined) throw new KubectlError('--for must be in resource/name form')
  if (rest.length > 0) throw new KubectlError('arguments in resource/name form may not have more than one slash')
  const kind: ServedKind = await (await session.mapper()).named(type.toLowerCase()).catch((error: unknown) => {
    throw error instanceof KubectlError ? new ExitError(1, error.message) : error
  })
  return `involvedObject.kind=${kind.kind},involvedObject.apiVersion=${apiVersionOf(kind)},involvedObject.name=${name}`
}

function timeOfEvent({ series, lastTimestamp, eventTime }: Event): number {
  const text = series === undefined ? (lastTimestamp ?? eventTime) : series.lastObservedTime
  return text === undefined || text === null ? 0 : epochMsOf(text)
}

/** Runs until the server ends the watch. */
async function watchEvents(
  invocation: EventsInvocation,
  {
    where,
    fieldSelector,
    table,
  }: { readonly where: string; readonly fieldSelector: string; readonly table: EventTable },
): Promise<void> {
  const { flags, session, stdout, clock } = invocation
  const kind = await (await session.mapper()).ofObject('v1', 'Event')
  const printer = flags.output === '' ? undefined : await printerOf(invocation, { keepOrder: true })
  const rest = await session.rest()
  for await (const { type, object } of rest.watch(
    { kind, namespace: where },
    { query: { fieldSelector, limit: 500 } },
  )) {
    if (type === 'ERROR') return
    const event = object as unknown as Event
    if (type === 'DELETED' || !isAmong(flags.types, event)) continue
    if (printer !== undefined) printer.print(object as unknown as JsonObject, stdout)
    else {
      table.add(event, clock.now())
      table.flush(stdout)
    }
  }
}

class EventTable {
  readonly #tabs = new TabWriter()
  readonly #withNamespace: boolean
  #needsHeader: boolean

  constructor({ flags }: EventsInvocation) {
    this.#withNamespace = flags['all-namespaces']
    this.#needsHeader = !flags['no-headers']
  }

  add(event: Event, nowMs: number): void {
    const namespaceCell = this.#withNamespace ? `${event.metadata.namespace ?? ''}\t` : ''
    if (this.#needsHeader) {
      this.#tabs.write(`${this.#withNamespace ? 'NAMESPACE\t' : ''}LAST SEEN\tTYPE\tREASON\tOBJECT\tMESSAGE\n`)
    }
    this.#needsHeader = false
    const { type = '', reason = '', involvedObject, message = '' } = event
    const { kind = '', name = '' } = involvedObject
    const cells = [intervalOf(event, nowMs), type, reason, `${kind}/${name}`, message.trim()].map(escapeTerminal)
    this.#tabs.write(`${namespaceCell}${cells.join('\t')}\n`)
  }

  flush(out: Output): void {
    out.write(this.#tabs.flush())
  }
}

/** `3m (x4 over 10m)`. */
function intervalOf({ eventTime, firstTimestamp, lastTimestamp, series, count = 0 }: Event, nowMs: number): string {
  const since = (text: string | undefined | null): string => ageText(text ?? undefined, nowMs)
  const first = since(eventTime ?? firstTimestamp)
  if (series !== undefined) return `${since(series.lastObservedTime)} (x${series.count} over ${first})`
  return count > 1 ? `${since(lastTimestamp)} (x${count} over ${first})` : first
}
