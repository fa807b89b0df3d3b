/** Whether somebody may be looking: false once the tab was hidden for a while. Hidden pages end their watches. */
import { signal, type ReadonlySignal } from '@preact/signals'

import { sleep } from './time.ts'

const HIDDEN_MS = 30_000

const awake = signal(true)
export const isAwake: ReadonlySignal<boolean> = awake

let hiding: AbortController | undefined

document.addEventListener('visibilitychange', () => {
  hiding?.abort()
  hiding = undefined
  if (document.visibilityState === 'visible') {
    awake.value = true
    return
  }
  hiding = new AbortController()
  sleep(HIDDEN_MS, hiding.signal).then(
    () => (awake.value = false),
    () => undefined,
  )
})
