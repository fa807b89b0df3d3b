/** The time of this tab as a signal, anew every second while something on the page shows an age. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

import { every, now } from './time.ts'

const time = signal(now())
let users = 0
let stop: (() => void) | undefined

/** The time in milliseconds. The component is drawn again every second. */
export function useNow(): number {
  useEffect(() => {
    users++
    time.value = now()
    stop ??= every(1000, () => (time.value = now()))
    return () => {
      users--
      if (users > 0) return
      stop?.()
      stop = undefined
    }
  }, [])
  return time.value
}
