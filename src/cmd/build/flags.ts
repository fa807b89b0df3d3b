/** Flags that all commands of `hyperkube build` have, by RKE's names. */
import { type Flag, flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

export interface BuildFlags {
  readonly config: string
  readonly 'ssh-agent-auth': boolean
  readonly 'ignore-docker-version': boolean
  readonly 'etcd-binary': string
  readonly local: boolean
}

export const BUILD_FLAGS: {
  readonly config: Flag<string>
  readonly 'ssh-agent-auth': Flag<boolean>
  readonly 'ignore-docker-version': Flag<boolean>
  readonly 'etcd-binary': Flag<string>
  readonly local: Flag<boolean>
} = {
  config: flag(string, '', 'cluster `file` (default: that of RKE_CONFIG, else cluster.yml)'),
  'ssh-agent-auth': flag(bool, false, 'use the SSH agent that SSH_AUTH_SOCK names'),
  'ignore-docker-version': flag(bool, false, 'has no effect: no machine needs Docker'),
  'etcd-binary': flag(
    string,
    '',
    'etcd `program` that is sent to machines of the etcd plane (default: the one in PATH here, else that of the machine)',
  ),
  local: flag(
    bool,
    false,
    'the cluster is this machine, without SSH; machines of the file do not count, nor need there be a file',
  ),
}

export interface CertificateFlags {
  readonly 'custom-certs': boolean
  readonly 'cert-dir': string
}

/** Of commands that take certificates which somebody else has signed. */
export const CERTIFICATE_FLAGS: {
  readonly 'custom-certs': Flag<boolean>
  readonly 'cert-dir': Flag<string>
} = {
  'custom-certs': flag(bool, false, 'use certificates of a folder'),
  'cert-dir': flag(string, '', '`folder` of certificates (default: cluster_certs beside cluster.yml)'),
}
