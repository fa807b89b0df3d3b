/** /debug/api_priority_and_fairness: the state of priority levels, queues and requests. */
import type { Answer, Call } from '#component/requests/call.ts'
import type { Clock } from '#lib/clock.ts'
import { durationOfMs } from '#lib/go/duration.ts'

import type { PriorityLevel } from './level.ts'
import type { Queue, Ticket } from './queue.ts'

export interface DumpParts {
  readonly levels: () => readonly PriorityLevel[]
  readonly clock: Clock
}

const PREFIX = '/debug/api_priority_and_fairness/'

/** Undefined for other paths. */
export function createDumps(parts: DumpParts): (call: Call) => Answer | undefined {
  return ({ info: { path }, query }) => {
    if (!path.startsWith(PREFIX)) return undefined
    switch (path.slice(PREFIX.length)) {
      case 'dump_priority_levels':
        return page(dumpLevels(parts.levels()))
      case 'dump_queues':
        return page(dumpQueues(parts.levels()))
      case 'dump_requests':
        return page(dumpRequests(parts, (query.get('includeRequestDetails') ?? '') !== ''))
      default:
        return undefined
    }
  }
}

interface Dump {
  readonly head: readonly string[]
  /** The maximum length of the cells of each column. */
  readonly widest: Iterable<readonly string[]>
  readonly rows: () => Iterable<readonly string[]>
}

const words = (text: string): readonly string[] => text.split(' ')

const LEVEL_HEAD = words(
  'PriorityLevelName ActiveQueues IsIdle IsQuiescing WaitingRequests ExecutingRequests DispatchedRequests RejectedRequests TimedoutRequests CancelledRequests',
)
const QUEUE_HEAD = words(
  'PriorityLevelName Index PendingRequests ExecutingRequests SeatsInUse NextDispatchR InitialSeatsSum MaxSeatsSum TotalWorkSum',
)
const REQUEST_HEAD = words(
  'PriorityLevelName FlowSchemaName QueueIndex RequestIndexInQueue FlowDistingsher ArriveTime InitialSeats FinalSeats AdditionalLatency StartTime',
)
const DETAIL_HEAD = words('UserName Verb APIPath Namespace Name APIVersion Resource SubResource')

function dumpLevels(levels: readonly PriorityLevel[]): Dump {
  const rows = levels.map(({ name, set, isQuiescing }) => {
    const active = [...set.queues.values()].filter(({ waiting }) => waiting.size > 0).length
    // Timed-out requests are counted as cancelled, as upstream.
    const counts = [set.waiting, set.executing, set.dispatched, set.rejected, 0, set.cancelled]
    return [name, active, set.isIdle, isQuiescing, ...counts].map(String)
  })
  return { head: LEVEL_HEAD, widest: rows, rows: () => rows }
}

function dumpQueues(levels: readonly PriorityLevel[]): Dump {
  const countOf = ({ set }: PriorityLevel): number => set.queuing?.queues ?? 0
  return {
    head: QUEUE_HEAD,
    // There may be millions of queues, of which few were ever used.
    widest: levels.flatMap((level) => [
      ...[...level.set.queues.values()].map((queue) => queueRow(level.name, queue.index, queue)),
      queueRow(level.name, Math.max(0, countOf(level) - 1), undefined),
    ]),
    *rows() {
      for (const level of levels) {
        const { queues } = level.set
        const last = Math.max(countOf(level), ...[...queues.keys()].map((index) => index + 1))
        for (let index = 0; index < last; index++) yield queueRow(level.name, index, queues.get(index))
      }
    },
  }
}

function queueRow(level: string, index: number, queue: Queue | undefined): string[] {
  const {
    waiting,
    executing = 0,
    seatsInUse = 0,
    nextDispatchR = 0,
    initialSeats = 0,
    seats = 0,
    work = 0,
  } = queue ?? {}
  const sums = [seatSeconds(nextDispatchR), initialSeats, seats, seatSeconds(work)]
  return [level, index, waiting?.size ?? 0, executing, seatsInUse, ...sums].map(String)
}

/** Upstream's format. */
function seatSeconds(value: number): string {
  return `${value.toFixed(8)}ss`
}

function dumpRequests({ levels, clock }: DumpParts, hasDetails: boolean): Dump {
  const offsetMs = clock.now() - clock.elapsed()
  const rows = levels().flatMap(({ name, set }) => [
    ...[...set.queues.values()].flatMap(({ waiting }) => [...waiting].map((ticket, at) => row(name, at, ticket))),
    ...[...set.running].map((ticket) => row(name, -1, ticket)),
  ])
  function row(level: string, at: number, ticket: Ticket): string[] {
    const { flow, queue, distinguisher, work, isWaiting, arrivedMs, startedMs } = ticket
    const place = [level, flow.name, queue?.index ?? -1, at, distinguisher, timeText(arrivedMs + offsetMs)]
    const cost = [work.initialSeats, work.finalSeats, durationOfMs(work.additionalMs)]
    const start = isWaiting ? '0001-01-01T00:00:00Z' : timeText(startedMs + offsetMs)
    return [...place, ...cost, start, ...(hasDetails ? detailsOf(ticket) : [])].map(String)
  }
  return { head: hasDetails ? [...REQUEST_HEAD, ...DETAIL_HEAD] : REQUEST_HEAD, widest: rows, rows: () => rows }
}

function detailsOf({ user, info }: Ticket): string[] {
  const { verb, path, namespace, name, group, version, resource, subresource } = info
  return [user.name, verb, path, namespace, name, group === '' ? version : `${group}/${version}`, resource, subresource]
}

/** With as many digits as needed. */
function timeText(ms: number): string {
  return new Date(ms).toISOString().replace(/\.?0+Z$/, 'Z')
}

/** The minimal column width. */
const MIN_WIDTH = 8
/** The number of rows per write. */
const PIECE_ROWS = 256

function page({ head, widest, rows }: Dump): Answer {
  const widths = head.map(() => MIN_WIDTH)
  for (const row of [head, ...widest]) {
    for (const [at, cell] of row.entries()) widths[at] = Math.max(widths[at] ?? 0, cell.length + 2)
  }
  const lineOf = (row: readonly string[]): string =>
    `${row.map((cell, at) => (at === row.length - 1 ? cell : `${cell},`.padEnd(widths[at] ?? 0))).join('')}\n`
  function* pieces(): Generator<Buffer, void, undefined> {
    let text = lineOf(head)
    let count = 0
    for (const row of rows()) {
      text += lineOf(row)
      if (++count % PIECE_ROWS !== 0) continue
      yield Buffer.from(text)
      text = ''
    }
    if (text !== '') yield Buffer.from(text)
  }
  return { status: 200, contentType: 'text/plain; charset=utf-8', body: pieces() }
}
