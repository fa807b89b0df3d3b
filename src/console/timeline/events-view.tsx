/** The events of an object and of its children as a time line, live, the newest on top. */
import type { VNode } from 'preact'

import type { Event } from '#apis/core/v1.ts'

import type { LiveObjects } from '../objects/live.ts'
import { ObjectLink } from '../objects/object-link.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { LongText } from '../parts/long-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { type Moment, reporterOf, timelineOf } from './timeline.ts'

export interface EventsViewProps {
  readonly cluster: string
  readonly live: LiveObjects
}

const MAX_SHOWN = 300

export function EventsView({ cluster, live }: EventsViewProps): VNode {
  const { state, objects, isWhole } = live
  if (state.type === 'failed') return <Notice title="The events cannot be shown" text={state.message} />
  if (objects.length === 0) {
    if (state.type === 'loading') return <p class="loading">Loading events …</p>
    return (
      <Notice
        title="There are no events"
        text="The API server keeps events for an hour. New ones appear here at once."
      />
    )
  }
  const moments = timelineOf(objects as readonly Event[])
  return (
    <section class="timeline" aria-label="Events">
      <ol>
        {moments.slice(0, MAX_SHOWN).map((moment) => (
          <MomentView key={moment.event.metadata.uid} cluster={cluster} moment={moment} />
        ))}
      </ol>
      {(moments.length > MAX_SHOWN || !isWhole) && (
        <p class="muted">{`The newest ${MAX_SHOWN} of ${moments.length}`}</p>
      )}
    </section>
  )
}

function MomentView({ cluster, moment }: { readonly cluster: string; readonly moment: Moment }): VNode {
  const { event, timeMs, count, isNewDay } = moment
  const { type = '', reason = '', message = '', involvedObject } = event
  const { kind = '', name = '', apiVersion = '', namespace } = involvedObject
  return (
    <>
      {isNewDay && (
        <li class="timeline-day">{new Date(timeMs).toLocaleDateString(undefined, { dateStyle: 'full' })}</li>
      )}
      <li class={type === 'Warning' ? 'moment moment-bad' : 'moment'}>
        <div class="moment-head">
          <strong>{reason}</strong> {type === 'Warning' && <span class="tone tone-bad">Warning</span>}{' '}
          <ObjectLink cluster={cluster} to={{ apiVersion, kind, namespace, name }}>
            <bdi>{`${kind} ${name}`}</bdi>
          </ObjectLink>
          <span class="muted">
            {count > 1 && `${count} times, last `}
            <AgeText time={timeMs} />
            {' ago'}
            {reporterOf(event) !== '' && ` from ${reporterOf(event)}`}
          </span>
        </div>
        <LongText text={message} name="message" />
      </li>
    </>
  )
}
