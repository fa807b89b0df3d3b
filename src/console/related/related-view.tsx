/** The objects around an object: its owners, what it owns as a tree, what it uses, and what uses it. */
import type { VNode } from 'preact'

import type { KubeObject } from '#meta/object.ts'

import { ObjectLink } from '../objects/object-link.tsx'
import { useOwners } from '../objects/owners.ts'
import type { Ref } from '../objects/ref.ts'
import { stateOf } from '../objects/state-of.ts'
import type { Dependant } from './dependants.ts'
import { usedRefs } from './references.ts'
import { useRelated } from './use-related.ts'

export interface RelatedViewProps {
  readonly cluster: string
  readonly object: KubeObject
  /** Changes when the objects around it may have changed. */
  readonly pulse: string
}

export function RelatedView({ cluster, object, pulse }: RelatedViewProps): VNode {
  const owners = useOwners(cluster, object)
  const related = useRelated(cluster, object, pulse)
  const used = usedRefs(object)
  return (
    <div class="boxes">
      <Box title="Owners" isEmpty={owners.length === 0} none="Nothing owns it.">
        <RefList cluster={cluster} refs={owners} />
      </Box>
      <Box title="Owns" isEmpty={related?.owned.length === 0} none="It owns nothing.">
        {related === undefined ? <p class="loading">Loading …</p> : <Tree cluster={cluster} nodes={related.owned} />}
      </Box>
      <Box title="Uses" isEmpty={used.length === 0} none="It names no other objects.">
        <RefList cluster={cluster} refs={used} />
      </Box>
      <Box title="Used by" isEmpty={related?.users.length === 0} none="Nothing that you may list uses it.">
        {related === undefined ? (
          <p class="loading">Loading …</p>
        ) : (
          <Tree cluster={cluster} nodes={related.users.map((user) => ({ object: user, children: [] }))} />
        )}
      </Box>
    </div>
  )
}

interface BoxProps {
  readonly title: string
  readonly isEmpty: boolean | undefined
  readonly none: string
  readonly children: VNode
}

function Box({ title, isEmpty, none, children }: BoxProps): VNode {
  return (
    <section class="box" aria-label={title}>
      <h2>{title}</h2>
      {isEmpty === true ? <p class="muted">{none}</p> : children}
    </section>
  )
}

function RefList({ cluster, refs }: { readonly cluster: string; readonly refs: readonly Ref[] }): VNode {
  return (
    <ul class="related">
      {refs.map((one) => (
        <li key={`${one.kind} ${one.name}`}>
          <ObjectLink cluster={cluster} to={one}>
            <bdi>{`${one.kind} ${one.name}`}</bdi>
          </ObjectLink>
        </li>
      ))}
    </ul>
  )
}

const MAX_SHOWN = 100

function Tree({ cluster, nodes }: { readonly cluster: string; readonly nodes: readonly Dependant[] }): VNode {
  return (
    <ul class="related">
      {nodes.slice(0, MAX_SHOWN).map(({ object, children }) => (
        <li key={object.metadata.uid}>
          <ObjectLine cluster={cluster} object={object} />
          {children.length > 0 && <Tree cluster={cluster} nodes={children} />}
        </li>
      ))}
      {nodes.length > MAX_SHOWN && <li class="muted">{`and ${nodes.length - MAX_SHOWN} more`}</li>}
    </ul>
  )
}

function ObjectLine({ cluster, object }: { readonly cluster: string; readonly object: KubeObject }): VNode {
  const { apiVersion = '', kind = '', metadata } = object
  const { name = '', namespace } = metadata
  const state = stateOf(object)
  return (
    <>
      <ObjectLink cluster={cluster} to={{ apiVersion, kind, name, namespace }}>
        <bdi>{`${kind} ${name}`}</bdi>
      </ObjectLink>{' '}
      {state !== undefined && <span class={`tone tone-${state.tone ?? 'none'}`}>{state.text}</span>}
    </>
  )
}
