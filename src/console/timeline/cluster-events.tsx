/** The events of a cluster as a time line: by minute and by object, live, warnings marked. */
import type { VNode } from 'preact'
import { useMemo, useState } from 'preact/hooks'

import type { Event } from '#apis/core/v1.ts'

import { clusterPath, listPath } from '../api/kinds.ts'
import { useNow } from '../browser/clock.ts'
import { useLive } from '../objects/live.ts'
import { ObjectLink } from '../objects/object-link.tsx'
import { LongText } from '../parts/long-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { location } from '../routing/router.tsx'
import { ActivityStrip } from './activity-strip.tsx'
import { EventFilterBar } from './event-filter.tsx'
import {
  activityOf,
  choicesOf,
  type EventFilter,
  type Minute,
  MINUTE_MS,
  minutesOf,
  type ObjectMoments,
} from './minutes.ts'
import { type Moment, reporterOf } from './timeline.ts'

const EVENTS = { group: '', version: 'v1', plural: 'events' }
const STRIP_MINUTES = 60
/** Objects that are drawn at first, and that the button adds. */
const STEP = 200

/** With a filter of the page, all pages of the list are read. */
const keepAll = (): boolean => true

export function ClusterEvents({ cluster }: { readonly cluster: string }): VNode {
  const { ns = '', kind = '', reason = '', type = '' } = location.value.query
  const filter: EventFilter = { kind, reason, isWarning: type === 'Warning' }
  const live = useLive(clusterPath(cluster, listPath(EVENTS, ns)), keepAll)
  const events = live.objects as readonly Event[]
  const choices = useMemo(() => choicesOf(events), [events])
  const minutes = useMemo(() => minutesOf(events, filter), [events, kind, reason, type])
  const { state } = live
  return (
    <>
      <EventFilterBar cluster={cluster} namespace={ns} filter={filter} choices={choices} />
      {state.type === 'failed' && <Notice title="The events cannot be shown" text={state.message} />}
      {state.type === 'stale' && (
        <p class="stale-bar" role="status">
          {`${state.message}. These are the events of ${new Date(state.sinceMs).toLocaleTimeString()}.`}
        </p>
      )}
      {state.type === 'loading' && events.length === 0 && <p class="loading">Loading events …</p>}
      {state.type === 'live' && minutes.length === 0 && <Nothing isFiltered={events.length > 0} />}
      {minutes.length > 0 && <TimeLine cluster={cluster} minutes={minutes} />}
      {!live.isWhole && (
        <p class="muted">{`The server has more events. These are the first ${events.length.toLocaleString('en')}.`}</p>
      )}
    </>
  )
}

function Nothing({ isFiltered }: { readonly isFiltered: boolean }): VNode {
  return isFiltered ? (
    <Notice title="No event fits the filter" text="Choose another kind or reason." />
  ) : (
    <Notice title="There are no events" text="The API server keeps events for an hour. New ones appear here at once." />
  )
}

interface TimeLineProps {
  readonly cluster: string
  readonly minutes: readonly Minute[]
}

function TimeLine({ cluster, minutes }: TimeLineProps): VNode {
  const [most, setMost] = useState(STEP)
  const shown = firstMinutes(minutes, most)
  const total = minutes.reduce((sum, { objects }) => sum + objects.length, 0)
  return (
    <>
      <LastHour minutes={minutes} />
      <section class="timeline" aria-label="Events by minute">
        {shown.map((minute) => (
          <MinuteView key={minute.startMs} cluster={cluster} minute={minute} />
        ))}
      </section>
      {total > most && (
        <button type="button" onClick={() => setMost(most + STEP)}>
          Show older events
        </button>
      )}
    </>
  )
}

/** Apart, because it is drawn again when time goes on. */
function LastHour({ minutes }: Pick<TimeLineProps, 'minutes'>): VNode {
  const nowMs = useNow()
  const current = Math.floor(nowMs / MINUTE_MS)
  const activity = useMemo(() => activityOf(minutes, nowMs, STRIP_MINUTES), [minutes, current])
  return <ActivityStrip activity={activity} />
}

/** As many minutes as have this number of objects. */
function firstMinutes(minutes: readonly Minute[], most: number): readonly Minute[] {
  let left = most
  return minutes.flatMap((minute) => {
    const objects = minute.objects.slice(0, Math.max(0, left))
    left -= objects.length
    return objects.length === 0 ? [] : [{ ...minute, objects }]
  })
}

function MinuteView({ cluster, minute }: { readonly cluster: string; readonly minute: Minute }): VNode {
  const { startMs, isNewDay, objects } = minute
  const date = new Date(startMs)
  return (
    <>
      {isNewDay && <p class="timeline-day">{date.toLocaleDateString(undefined, { dateStyle: 'full' })}</p>}
      <h2 class="timeline-minute">
        <time dateTime={date.toISOString()}>{date.toLocaleTimeString(undefined, { timeStyle: 'short' })}</time>
      </h2>
      <ol>
        {objects.map((object) => (
          <ObjectView
            key={`${object.ref.kind}/${object.ref.namespace ?? ''}/${object.ref.name}`}
            {...{ cluster, object }}
          />
        ))}
      </ol>
    </>
  )
}

function ObjectView({ cluster, object }: { readonly cluster: string; readonly object: ObjectMoments }): VNode {
  const { ref, moments, hasWarning } = object
  return (
    <li class={hasWarning ? 'moment moment-bad' : 'moment'}>
      <div class="moment-head">
        <ObjectLink cluster={cluster} to={ref}>
          <bdi>{`${ref.kind} ${ref.name}`}</bdi>
        </ObjectLink>
        {ref.namespace !== undefined && <span class="muted">{`in ${ref.namespace}`}</span>}
      </div>
      {moments.map((moment) => (
        <MomentLine key={moment.event.metadata.uid} moment={moment} />
      ))}
    </li>
  )
}

function MomentLine({ moment: { event, timeMs, count } }: { readonly moment: Moment }): VNode {
  const { type = '', reason = '', message = '' } = event
  const from = reporterOf(event)
  const details = [
    new Date(timeMs).toLocaleTimeString(),
    count > 1 ? `${count} times` : '',
    from === '' ? '' : `from ${from}`,
  ]
  return (
    <div class="moment-line">
      <strong>{reason}</strong> {type === 'Warning' && <span class="tone tone-bad">Warning</span>}{' '}
      <LongText text={message} name="message" /> <span class="muted">{details.filter(Boolean).join(', ')}</span>
    </div>
  )
}
