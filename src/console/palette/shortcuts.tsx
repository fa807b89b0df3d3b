/** Handles the keys that work on every page, and lists them. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { isTyping } from '../browser/is-typing.ts'
import { switchTheme } from '../browser/theme.ts'
import { Dialog } from '../forms/dialog.tsx'
import { go, location } from '../routing/router.tsx'
import { Palette } from './palette.tsx'

/** Those behind `g`. */
const GO_TO: Readonly<Record<string, string>> = { p: 'pods', n: 'nodes', e: 'events', s: 'services' }

const KEYS: readonly (readonly [keys: string, meaning: string])[] = [
  ['Ctrl-K or :', 'Go to a kind, a cluster or a page; “po web” for the pods of namespace web'],
  ['/', 'Filter the list'],
  ['j k or arrows', 'Select the next or previous row'],
  ['Enter', 'Open the selected row'],
  ['Space', 'Check the selected row, for an action on many'],
  ['g c', 'Clusters'],
  ['g o', 'Overview of the cluster'],
  ['g p, g n, g e, g s', 'Pods, nodes, events, services'],
  ['d y l s v m', 'Tabs of an object: Summary, YAML, Logs, Shell, Events, Related'],
  ['t', 'Switch the theme'],
  ['?', 'This list'],
  ['Escape', 'Close'],
]

type Opened = 'palette' | 'keys' | undefined

export function Shortcuts(): VNode | null {
  const [opened, setOpened] = useState<Opened>()
  useEffect(() => {
    let isGoing = false
    const onKeyDown = (event: KeyboardEvent): void => {
      const key = keyOf(event)
      const run = isGoing ? () => goTo(event.key) : key === undefined ? undefined : GLOBAL_KEYS[key]
      isGoing = !isGoing && key === 'g'
      if (run === undefined && !isGoing) return
      run?.(setOpened)
      event.preventDefault()
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [])
  const close = (): void => setOpened(undefined)
  if (opened === 'palette') return <Palette close={close} showKeys={() => setOpened('keys')} />
  return opened === 'keys' ? <KeyList close={close} /> : null
}

const GLOBAL_KEYS: Readonly<Record<string, (open: (what: Opened) => void) => void>> = {
  'Ctrl-k': (open) => open('palette'),
  ':': (open) => open('palette'),
  '?': (open) => open('keys'),
  '/': () => document.querySelector<HTMLInputElement>('.filter')?.focus(),
  t: switchTheme,
}

/** Undefined for keys that belong to a field or to the browser. */
function keyOf({ key, ctrlKey, metaKey, altKey, target }: KeyboardEvent): string | undefined {
  if (ctrlKey || metaKey) return key.toLowerCase() === 'k' ? 'Ctrl-k' : undefined
  return altKey || isTyping(target) ? undefined : key
}

function KeyList({ close }: { readonly close: () => void }): VNode {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <dl class="facts">
        {KEYS.map(([keys, meaning]) => [<dt key={keys}>{keys}</dt>, <dd key={meaning}>{meaning}</dd>])}
      </dl>
      <button type="button" class="primary" onClick={close}>
        Close
      </button>
    </Dialog>
  )
}

function goTo(key: string): void {
  const { page } = location.value
  if (key === 'c') return go({ page: 'clusters' })
  if (!('cluster' in page)) return
  const { cluster } = page
  const plural = GO_TO[key]
  if (key === 'o') go({ page: 'cluster', cluster })
  else if (plural !== undefined) go({ page: 'list', cluster, kind: { group: '', version: 'v1', plural } })
}
