/** Downloads of the files with which `hyperkube build` works without the server. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { RequestError, send } from '../api/request.ts'
import { saveText } from '../browser/save-text.ts'
import { buildRoute } from '../operations/operation-requests.ts'

const FILES: readonly (readonly [name: string, what: string])[] = [
  ['cluster.yml', 'the cluster file with its keys and passwords'],
  ['cluster.rkestate', 'the state, with all certificates and their keys'],
  ['kube_config_cluster.yml', 'the kubeconfig of an administrator, straight to the API server'],
  ['cluster.known_hosts', 'the host keys of the machines'],
  ['ssh_key', 'the private SSH key'],
]

export function PrivateFiles({ cluster }: { readonly cluster: string }): VNode {
  const [error, setError] = useState('')
  const save = (file: string): void => {
    setError('')
    send(buildRoute(cluster, 'files'), { method: 'POST', body: { file }, accept: '*/*' })
      .then((response) => response.text())
      .then(
        (text) => saveText(file, text),
        (failed: unknown) => setError(failed instanceof RequestError ? failed.message : String(failed)),
      )
  }
  return (
    <section class="box">
      <h2>Files for hyperkube build</h2>
      <p>They work without this server, and whoever has them can do anything in the cluster.</p>
      <ul class="results">
        {FILES.map(([name, what]) => (
          <li key={name}>
            <button type="button" class="quiet" onClick={() => save(name)}>
              {name}
            </button>
            <span class="muted">{what}</span>
          </li>
        ))}
      </ul>
      {error !== '' && (
        <p class="form-error" role="alert">
          {error}
        </p>
      )}
    </section>
  )
}
