/** The kubectl commands that forward ports of an object of a managed cluster. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { RequestError } from '../api/request.ts'
import { session } from '../browser/session.ts'
import { CopyButton } from '../parts/copy-button.tsx'
import { type ForwardedPort, kubectlCommand } from './forwarded-ports.ts'
import { saveKubeconfig } from './save-kubeconfig.ts'

interface CommandBoxProps {
  readonly cluster: string
  readonly object: KubeObject
  readonly ports: readonly ForwardedPort[]
}

export function CommandBox({ cluster, object, ports }: CommandBoxProps): VNode {
  const [failed, setFailed] = useState('')
  const displayName = session.value?.clusters?.find(({ name }) => name === cluster)?.displayName ?? cluster
  const save = (): void => {
    setFailed('')
    saveKubeconfig({ metadata: { name: cluster }, spec: { displayName } }).catch((error: unknown) => {
      if (!(error instanceof RequestError)) throw error
      setFailed(error.message)
    })
  }
  return (
    <>
      <p class="muted">
        This server runs on another machine, so it cannot open a port on yours. Download the kubeconfig, then run
        kubectl beside it:
      </p>
      <p>
        <button type="button" onClick={save}>
          Download the kubeconfig
        </button>
      </p>
      {failed !== '' && (
        <p class="words words-bad" role="alert">
          {failed}
        </p>
      )}
      {ports.map((port) => {
        const command = kubectlCommand(object, port, `${displayName}.kubeconfig`)
        return (
          <div key={port.port}>
            <pre class="command" role="region" aria-label={`Command for port ${port.port}`} tabIndex={0}>
              {command}
            </pre>
            <CopyButton text={command} name={`the command for port ${port.port}`} />
          </div>
        )
      })}
    </>
  )
}
