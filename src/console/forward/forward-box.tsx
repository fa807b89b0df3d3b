/** The ports of a pod or Service that the user can reach from this machine. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { useMay } from '../access/use-may.ts'
import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { CommandBox } from './command-box.tsx'
import { ForwardRow } from './forward-row.tsx'
import { type ForwardedPort, forwardedPorts } from './forwarded-ports.ts'
import { type Forward, openForward, useForwards } from './forwards.ts'

export interface ForwardBoxProps {
  readonly cluster: string
  readonly object: KubeObject
}

const PODS = { group: '', version: 'v1', plural: 'pods' }

export function ForwardBox({ cluster, object }: ForwardBoxProps): VNode | null {
  const ports = forwardedPorts(object)
  const { name = '', namespace = '' } = object.metadata
  const about = { metadata: object.kind === 'Pod' ? { name, namespace } : { namespace } }
  const may = useMay(cluster, { verb: 'create', kind: PODS, subresource: 'portforward', object: about })
  if (ports.length === 0 || !may) return null
  return (
    <section class="box box-wide" aria-label="Port forward">
      <h2>Port forward</h2>
      {session.value?.mode === 'many-clusters' ? (
        <CommandBox cluster={cluster} object={object} ports={ports} />
      ) : (
        <Ports object={object} ports={ports} />
      )}
    </section>
  )
}

interface PortsProps {
  readonly object: KubeObject
  readonly ports: readonly ForwardedPort[]
}

function Ports({ object, ports }: PortsProps): VNode {
  const { items = [], error } = useForwards().value
  const [failed, setFailed] = useState('')
  const onError = (thrown: unknown): void => {
    if (!(thrown instanceof RequestError)) throw thrown
    setFailed(thrown.message)
  }
  const { kind = '', metadata } = object
  const { name = '', namespace = '' } = metadata
  const open = (port: number): void => {
    setFailed('')
    openForward({ kind, namespace, name, port }).catch(onError)
  }
  const isOf = (forward: Forward): boolean =>
    forward.kind === kind && forward.name === name && forward.namespace === namespace
  return (
    <>
      <p class="muted">The console opens a port of this machine that leads to the pod. It ends with your session.</p>
      <dl class="fields">
        {ports.map(({ port, name: label }) => {
          const opened = items.filter((forward) => isOf(forward) && forward.port === port)
          return (
            <div key={port}>
              <dt>{label === '' ? port : `${port} ${label}`}</dt>
              <dd>
                {opened.map((forward) => (
                  <ForwardRow key={forward.id} forward={forward} onError={onError} />
                ))}
                {opened.length === 0 && (
                  <button type="button" aria-label={`Forward port ${port}`} onClick={() => open(port)}>
                    Forward
                  </button>
                )}
              </dd>
            </div>
          )
        })}
      </dl>
      {(failed || error) !== '' && (
        <p class="words words-bad" role="alert">
          {failed || error}
        </p>
      )}
    </>
  )
}
