/** API server settings of a cluster on one machine, as kubeadm: one CA, authorizers Node and RBAC. */
import type { Settings } from '#control-plane/flags/flags.ts'
import { settingsWith } from '#control-plane/flags/flags.ts'
import { controllerSettings, type ControllerSettings } from '#controllers/settings.ts'
import { nthAddress, parseCidr } from '#lib/net/cidr.ts'

import { rangesOf } from './address-ranges.ts'

/** The default. */
export const SERVICE_CIDR = '10.0.0.0/24'

/** The pod range with 256 addresses for each node: kubeadm's usual one, or a larger one for up to 32,768 nodes. */
export function podCidrFor(nodes: number): string {
  return nodes <= 256 ? '10.244.0.0/16' : '10.128.0.0/9'
}

/** The server's names: from this machine, and from pods through its Service, which has the first address. */
export function servingNames(serviceCidr: string = SERVICE_CIDR): readonly string[] {
  const blocks = rangesOf(serviceCidr).flatMap((text) => parseCidr(text) ?? [])
  return [
    '127.0.0.1',
    '::1',
    'localhost',
    ...blocks.map((block) => nthAddress(block, 1)),
    'kubernetes',
    'kubernetes.default',
    'kubernetes.default.svc',
    'kubernetes.default.svc.cluster.local',
  ]
}

/** `own` has storage and listen settings; `pki` returns the path of a certificate file. */
export function serverSettings(pki: (file: string) => string, own: Partial<Settings>): Settings {
  return settingsWith({
    'tls-cert-file': pki('apiserver.crt'),
    'tls-private-key-file': pki('apiserver.key'),
    'client-ca-file': pki('ca.crt'),
    'requestheader-client-ca-file': pki('front-proxy-ca.crt'),
    'requestheader-allowed-names': ['front-proxy-client'],
    'requestheader-username-headers': ['X-Remote-User'],
    'requestheader-uid-headers': ['X-Remote-Uid'],
    'requestheader-group-headers': ['X-Remote-Group'],
    'requestheader-extra-headers-prefix': ['X-Remote-Extra-'],
    'proxy-client-cert-file': pki('front-proxy-client.crt'),
    'proxy-client-key-file': pki('front-proxy-client.key'),
    'service-account-signing-key-file': pki('sa.key'),
    'service-account-issuer': ['https://kubernetes.default.svc.cluster.local'],
    'service-cluster-ip-range': SERVICE_CIDR,
    'authorization-mode': ['Node', 'RBAC'],
    'allow-privileged': true,
    'kubelet-certificate-authority': pki('ca.crt'),
    'kubelet-client-certificate': pki('apiserver-kubelet-client.crt'),
    'kubelet-client-key': pki('apiserver-kubelet-client.key'),
    // By name only without an address.
    'kubelet-preferred-address-types': ['InternalIP', 'ExternalIP', 'Hostname'],
    ...own,
  })
}

export function managerSettings(
  pki: (file: string) => string,
  own: Partial<ControllerSettings> = {},
): ControllerSettings {
  return controllerSettings({
    'root-ca-file': pki('ca.crt'),
    'service-account-private-key-file': pki('sa.key'),
    'cluster-signing-cert-file': pki('ca.crt'),
    'cluster-signing-key-file': pki('ca.key'),
    'service-cluster-ip-range': SERVICE_CIDR,
    'cluster-cidr': podCidrFor(0),
    'allocate-node-cidrs': true,
    ...own,
  })
}
