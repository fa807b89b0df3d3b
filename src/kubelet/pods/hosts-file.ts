/** Writes the content of `/etc/hosts` for the containers of a pod. Pure. */
import type { Pod } from '#apis/core/v1.ts'

import { hostnameOf } from '../pod/sandbox-config.ts'

const OWN = `# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
`
const OF_NODE = '# Kubernetes-managed hosts file (host network).\n'

/** `ofNode` is the node's file, which pods with host network get. */
export function hostsFile(pod: Pod, podIps: readonly string[], clusterDomain: string, ofNode: string): string {
  const { hostname, domain } = hostnameOf(pod, clusterDomain)
  const names = domain === '' ? hostname : `${hostname}.${domain}\t${hostname}`
  const base = pod.spec.hostNetwork === true ? OF_NODE + ofNode : OWN + podIps.map((ip) => `${ip}\t${names}\n`).join('')
  const { hostAliases = [] } = pod.spec
  if (hostAliases.length === 0) return base
  const aliases = hostAliases.map(({ ip, hostnames = [] }) => `${ip}\t${hostnames.join('\t')}\n`)
  return `${base}\n# Entries added by HostAliases.\n${aliases.join('')}`
}
