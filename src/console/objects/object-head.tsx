/** The head of an object's page: kind, name, namespace, state, age and owners. */
import type { ComponentChildren, VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import type { ListState } from '../lists/messages.ts'
import { AgeText } from '../parts/age-text.tsx'
import { ObjectLink } from './object-link.tsx'
import { useOwners } from './owners.ts'
import { stateOf } from './state-of.ts'

export interface ObjectHeadProps {
  readonly cluster: string
  readonly object: KubeObject
  /** Buttons. */
  readonly children?: ComponentChildren
}

export function ObjectHead({ cluster, object, children }: ObjectHeadProps): VNode {
  const { kind = '', metadata } = object
  const { name = '', namespace = '', creationTimestamp } = metadata
  const state = stateOf(object)
  const owners = useOwners(cluster, object)
  return (
    <header class="object-head">
      <p class="crumbs">
        <span>{kind}</span>
        {namespace !== '' && (
          <span>
            {'in '}
            <ObjectLink cluster={cluster} to={{ apiVersion: 'v1', kind: 'Namespace', name: namespace }} />
          </span>
        )}
        {owners.length > 0 && (
          <span>
            {'of '}
            {owners.map((owner, at) => (
              <span key={owner.name}>
                {at > 0 && ' of '}
                <ObjectLink cluster={cluster} to={owner}>
                  {`${owner.kind} ${owner.name}`}
                </ObjectLink>
              </span>
            ))}
          </span>
        )}
      </p>
      <div class="page-head">
        <h1>
          <bdi>{name}</bdi>
        </h1>
        {state !== undefined && <span class={`tone tone-${state.tone ?? 'none'}`}>{state.text}</span>}
        {creationTimestamp !== undefined && (
          <span class="muted">
            <AgeText time={creationTimestamp} /> old
          </span>
        )}
        <span class="bar-space" />
        {children}
      </div>
    </header>
  )
}

export interface FreshnessProps {
  readonly state: ListState
  readonly deletedAtMs: number | undefined
}

/** A bar that says that the page shows an old state. */
export function Freshness({ state, deletedAtMs }: FreshnessProps): VNode | null {
  if (deletedAtMs !== undefined) {
    return (
      <p class="stale-bar stale-bar-bad" role="status">
        {`Deleted at ${new Date(deletedAtMs).toLocaleTimeString()}. This is its last state.`}
      </p>
    )
  }
  if (state.type !== 'stale') return null
  return (
    <p class="stale-bar" role="status">
      {`${state.message}. This is the state of ${new Date(state.sinceMs).toLocaleTimeString()}.`}
    </p>
  )
}
