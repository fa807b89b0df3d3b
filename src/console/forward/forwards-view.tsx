/** All port forwards of this session. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { ObjectLink } from '../objects/object-link.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { ForwardRow } from './forward-row.tsx'
import { type Forward, useForwards } from './forwards.ts'

export function ForwardsView({ cluster }: { readonly cluster: string }): VNode {
  if (session.value?.mode !== 'one-cluster') {
    return (
      <Notice
        title="This server forwards no ports"
        text="It runs on another machine, so it cannot open a port on yours. Pages of pods and Services show the kubectl command that does."
      />
    )
  }
  return <Forwards cluster={cluster} />
}

function Forwards({ cluster }: { readonly cluster: string }): VNode {
  const { items, error } = useForwards().value
  const [failed, setFailed] = useState('')
  const onError = (thrown: unknown): void => {
    if (!(thrown instanceof RequestError)) throw thrown
    setFailed(thrown.message)
  }
  if (items === undefined && error !== '') return <Notice title="The port forwards cannot be shown" text={error} />
  if (items === undefined) return <p class="loading">Loading port forwards …</p>
  return (
    <>
      {(failed || error) !== '' && (
        <p class="words words-bad" role="alert">
          {failed || error}
        </p>
      )}
      {items.length === 0 && (
        <Notice
          title="There are no port forwards"
          text="Open one on the page of a pod or Service that has ports. It ends with your session."
        />
      )}
      <div class="boxes">
        {items.map((forward) => (
          <Item key={forward.id} cluster={cluster} forward={forward} onError={onError} />
        ))}
      </div>
    </>
  )
}

interface ItemProps {
  readonly cluster: string
  readonly forward: Forward
  readonly onError: (error: unknown) => void
}

function Item({ cluster, forward, onError }: ItemProps): VNode {
  const { kind, namespace, name, port, openedAt } = forward
  return (
    <section class="box">
      <h2>
        <ObjectLink cluster={cluster} to={{ apiVersion: 'v1', kind, namespace, name }}>
          {`${kind} ${namespace}/${name}, port ${port}`}
        </ObjectLink>
      </h2>
      <p class="muted">
        {'Open for '}
        <AgeText time={openedAt} />
      </p>
      <ForwardRow forward={forward} onError={onError} />
    </section>
  )
}
