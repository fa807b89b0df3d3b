/** Copies a text to the clipboard, and says whether it worked. */
import type { VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'

import { sleep } from '../browser/time.ts'

const SAID_MS = 2000

export function CopyButton({ text, name }: { readonly text: string; readonly name: string }): VNode {
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (said === '') return undefined
    const stop = new AbortController()
    sleep(SAID_MS, stop.signal).then(
      () => setSaid(''),
      () => undefined,
    )
    return () => stop.abort()
  }, [said])
  const copy = (): void => {
    // Browsers have a clipboard on HTTPS and loopback only.
    const { clipboard } = navigator as { readonly clipboard?: Clipboard }
    if (clipboard === undefined) setSaid('Not permitted')
    else
      clipboard.writeText(text).then(
        () => setSaid('Copied'),
        () => setSaid('Not permitted'),
      )
  }
  return (
    <button type="button" class="quiet copy" aria-label={`Copy ${name}`} onClick={copy}>
      {said === '' ? 'Copy' : said}
    </button>
  )
}
