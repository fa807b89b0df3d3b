/** Tests that the programs accept the flags that `hyperkube build` gives them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { APISERVER_FLAGS } from '#control-plane/flags/flags.ts'
import { findUnsupported } from '#lib/flags/flag-support.ts'
import { defineFlags, type FlagGroups, parseFlags } from '#lib/flags/flags.ts'
import { argumentsOf, componentFlags, type ComponentName, componentsOf } from '#provision/components/component-flags.ts'
import { type ClusterFile, readClusterFile } from '#provision/file/cluster-file.ts'

import { MANAGER_FLAGS } from '../controller-manager/flags.ts'
import { KUBELET_FLAGS } from '../kubelet/flags.ts'
import { PROXY_FLAGS } from '../proxy/flags.ts'
import { SCHEDULER_FLAGS } from '../scheduler/flags.ts'

const PROGRAMS: Readonly<Partial<Record<ComponentName, FlagGroups>>> = {
  'kube-apiserver': APISERVER_FLAGS,
  'kube-controller-manager': MANAGER_FLAGS,
  'kube-scheduler': SCHEDULER_FLAGS,
  kubelet: KUBELET_FLAGS,
  'kube-proxy': PROXY_FLAGS,
}

const NODES = `nodes:
- {address: 10.0.0.1, internal_address: 192.168.0.1, user: root, role: [controlplane, etcd]}
- {address: worker.example.com, user: root, role: [worker], taints: [{key: a, value: b, effect: NoSchedule}]}
`

/** All options that change flags, on and off. */
const FILES = {
  plain: NODES,
  everything: `${NODES}services:
  kube-api:
    always_pull_images: true
    event_rate_limit: {enabled: true}
    secrets_encryption_config: {enabled: true}
    extra_args: {v: 4, delete-collection-workers: 3}
    extra_args_array: {service-account-issuer: ["https://a", "https://b"]}
  kubelet: {generate_serving_certificate: true, extra_args: {max-pods: 250}}
authentication: {strategy: x509|webhook}
cloud_provider: {name: external}
dns: {nodelocal: {ip_address: 169.254.20.10}}
private_registries: [{url: 1.dkr.ecr.eu.amazonaws.com, ecr_credential_plugin: {aws_access_key_id: a}}]
prefix_path: /opt/rke
`,
  'dual stack': `${NODES}services:
  kube-api: {service_cluster_ip_range: "10.43.0.0/16,fd98::/108"}
  kube-controller: {cluster_cidr: "10.42.0.0/16,fd42::/56"}
`,
  'no authorization': `${NODES}authorization: {mode: none}\nservices: {kube-api: {audit_log: {enabled: false}}}\n`,
}

function clusterOf(text: string): ClusterFile {
  const { cluster, faults } = readClusterFile(text)
  assert.deepEqual(faults, [])
  return cluster as ClusterFile
}

describe('component flags of a built cluster', () => {
  for (const [name, text] of Object.entries(FILES)) {
    it(`exist in our programs for the sample cluster "${name}"`, () => {
      const cluster = clusterOf(text)
      for (const node of cluster.nodes) {
        for (const component of componentsOf(cluster, node)) {
          const groups = PROGRAMS[component]
          if (!groups) continue
          const facts = { usesSystemdResolved: true, cgroupDriver: 'systemd' }
          const args = argumentsOf(componentFlags(component, cluster, node, facts))
          const { values, changed, args: left } = parseFlags(defineFlags(groups), args)
          assert.deepEqual(left, [])
          assert.deepEqual(findUnsupported(groups, values, changed).errors, [], component)
        }
      }
    })
  }
})
