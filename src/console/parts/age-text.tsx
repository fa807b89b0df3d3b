/** An age that goes on, with the moment in its title. */
import type { VNode } from 'preact'

import { useNow } from '../browser/clock.ts'
import { formatAge } from './age.ts'

export function AgeText({ time }: { readonly time: string | number }): VNode {
  const nowMs = useNow()
  const date = new Date(time)
  if (Number.isNaN(date.getTime())) return <>{time}</>
  return (
    <time dateTime={date.toISOString()} title={date.toLocaleString()}>
      {formatAge(nowMs - date.getTime())}
    </time>
  )
}
