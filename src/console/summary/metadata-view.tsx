/** Labels, annotations and finalizers of an object. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { CopyButton } from '../parts/copy-button.tsx'
import { LongText } from '../parts/long-text.tsx'
import { shownAnnotations } from './data.ts'

export function MetadataView({ object }: { readonly object: KubeObject }): VNode {
  return (
    <>
      <Pairs title="Labels" map={object.metadata.labels} />
      <Pairs title="Annotations" map={shownAnnotations(object)} />
    </>
  )
}

interface PairsProps {
  readonly title: string
  readonly map: Readonly<Record<string, string>> | undefined
}

function Pairs({ title, map = {} }: PairsProps): VNode | null {
  const entries = Object.entries(map)
  if (entries.length === 0) return null
  return (
    <section class="box box-wide">
      <h2>{title}</h2>
      <dl class="pairs">
        {entries.map(([key, value]) => (
          <div key={key}>
            <dt>
              <bdi>{key}</bdi>
            </dt>
            <dd>
              <LongText text={value} name={key} /> <CopyButton text={`${key}=${value}`} name={key} />
            </dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
