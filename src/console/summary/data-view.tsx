/** The data of a ConfigMap or a Secret. Values of Secrets stay hidden until somebody asks for one. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { CopyButton } from '../parts/copy-button.tsx'
import { dataEntries, type DataEntry } from './data.ts'

export function DataView({ object }: { readonly object: KubeObject }): VNode {
  const entries = dataEntries(object)
  return (
    <section class="box box-wide">
      <h2>Data</h2>
      {entries.length === 0 && <p class="muted">It has no keys.</p>}
      <dl class="data">
        {entries.map((entry) => (
          <Entry key={entry.key} entry={entry} />
        ))}
      </dl>
    </section>
  )
}

/** Longer values are cut on the page; the button copies all of it. */
const MAX_SHOWN = 20_000

function Entry({ entry }: { readonly entry: DataEntry }): VNode {
  const { key, isSecret, bytes } = entry
  const [isShown, setIsShown] = useState(!isSecret)
  const text = isShown ? entry.text() : undefined
  return (
    <div>
      <dt>
        <bdi>{key}</bdi> <span class="muted">{`${bytes.toLocaleString('en')} bytes`}</span>{' '}
        {isSecret && (
          <button
            type="button"
            class="quiet"
            aria-pressed={isShown}
            aria-label={`Show ${key}`}
            onClick={() => setIsShown(!isShown)}
          >
            {isShown ? 'Hide' : 'Show'}
          </button>
        )}{' '}
        {isShown && text !== undefined && <CopyButton text={text} name={key} />}
      </dt>
      <dd>
        {!isShown && <span aria-hidden="true">••••••••</span>}
        {isShown && text === undefined && <span class="muted">Not text</span>}
        {isShown && text !== undefined && (
          <pre tabIndex={0} aria-label={key}>
            {text.slice(0, MAX_SHOWN)}
            {text.length > MAX_SHOWN && '…'}
          </pre>
        )}
      </dd>
    </div>
  )
}
