/** The SSH key of a built cluster, with the command that admits it on a machine. */
import type { VNode } from 'preact'

import { CopyButton } from '../parts/copy-button.tsx'

export interface SshKeyBoxProps {
  readonly publicKey: string
  /** Names the key in authorized_keys. */
  readonly cluster: string
}

export function SshKeyBox({ publicKey, cluster }: SshKeyBoxProps): VNode {
  const key = publicKey.trim()
  const line = key.split(/\s+/).length > 2 ? key : `${key} hyperkube-${cluster}`
  const command = `mkdir -p ~/.ssh && echo '${line}' >> ~/.ssh/authorized_keys`
  return (
    <section class="box">
      <h2>SSH key of the server</h2>
      <p>Run this on each machine without an agent, as the SSH user of the cluster file:</p>
      <pre class="command" role="region" aria-label="Command that admits the key" tabIndex={0}>
        {command}
      </pre>
      <CopyButton text={command} name="the command that admits the key" />
    </section>
  )
}
