/** Whether the page is looked at and online. Hidden pages end their watches; pages that come online begin them again. */
import { signal, type ReadonlySignal } from '@preact/signals'

import { sleep } from './time.ts'

const HIDDEN_MS = 30_000

const awake = signal(true)
/** False once the tab was hidden for a while. */
export const isAwake: ReadonlySignal<boolean> = awake

const changes = signal(0)
/** Counts how often the network came back. */
export const networkChanges: ReadonlySignal<number> = changes
addEventListener('online', () => changes.value++)

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
