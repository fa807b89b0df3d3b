/**
 * Generates docs/metrics.md from the tables of metric families. `node scripts/metrics-doc.ts` writes the page; a test
 * checks that it is up to date.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

import { CERTIFICATE_BUCKETS, CERTIFICATE_FAMILIES } from '#kubelet/metrics/certificate-metrics.ts'
import { KUBELET_BUCKETS, KUBELET_FAMILIES } from '#kubelet/metrics/kubelet-families.ts'
import { PROBE_FAMILIES } from '#kubelet/metrics/probe-counts.ts'
import { type FamilyRow, parseFamily } from '#lib/metrics/table.ts'
import { BUCKETS } from '#model/metrics/buckets.ts'
import { CONTROLLER_FAMILIES } from '#model/metrics/controller-families.ts'
import { FAMILIES } from '#model/metrics/families.ts'
import { PROXY_BUCKETS, PROXY_FAMILIES } from '#proxy/proxy-metrics.ts'
import { SCHEDULER_BUCKETS, SCHEDULER_FAMILIES } from '#scheduler/decision/meters.ts'

export const DOC: string = join(import.meta.dirname, '..', 'docs', 'metrics.md')

const HEAD = `# Metrics

\`node scripts/metrics-doc.ts\` generates this page from the tables of families; do not edit it.

\`GET /metrics\` of kube-apiserver returns these families with the names, types, labels and buckets of Kubernetes v1.36, each after its
first event. It also returns \`process_*\` and \`nodejs_eventloop_lag_*\`. \`DELETE /metrics\` resets all of them.
\`GET /metrics/slis\` returns only \`kubernetes_healthcheck*\`. The flags \`--disabled-metrics\`, \`--allow-metric-labels\` and
\`--show-hidden-metrics-for-version\` select families and label values. \`test/upstream/metrics.ts\` lists upstream's families that
are missing, each with the reason.
`

const CONTROLLERS = `## kube-controller-manager

It also has \`workqueue_*\` with the name of each controller, \`rest_client_*\` and \`leader_election_master_status\`:
`

const KUBELET = `## kubelet

\`GET /metrics\` of a kubelet also returns \`rest_client_*\` and the families of every component. \`/metrics/probes\` returns \`prober_*\`.
Families of certificates exist only if the kubelet renews them. \`/metrics/resource\` and \`/metrics/cadvisor\` return the usage of
containers. \`test/upstream/kubelet-metrics.ts\` lists upstream's families that are missing, each with the reason.
`

const SCHEDULER = `## kube-scheduler

It also has \`rest_client_*\`, \`leader_election_master_status\` and the families of every component:
`

const PROXY = `## kube-proxy

It also has the families of every component:
`

/** The page. */
export function renderDoc(): string {
  const all = { ...KUBELET_BUCKETS, ...CERTIFICATE_BUCKETS, ...BUCKETS, ...SCHEDULER_BUCKETS, ...PROXY_BUCKETS }
  const bounds = Object.entries(all).map(([name, list]) => `| ${name} | ${list.join(', ')} |`)
  return [
    HEAD,
    ...tableOf(FAMILIES),
    '',
    CONTROLLERS,
    ...tableOf(CONTROLLER_FAMILIES),
    '',
    KUBELET,
    ...tableOf({ ...KUBELET_FAMILIES, ...CERTIFICATE_FAMILIES, ...PROBE_FAMILIES }),
    '',
    SCHEDULER,
    ...tableOf(SCHEDULER_FAMILIES),
    '',
    PROXY,
    ...tableOf(PROXY_FAMILIES),
    '',
    '## Buckets',
    '',
    '| Name | Upper bounds |',
    '| --- | --- |',
    ...bounds,
    '',
  ].join('\n')
}

function tableOf(families: Readonly<Record<string, FamilyRow>>): string[] {
  const names = Object.keys(families).sort()
  const rows = names.map((name) => {
    const { type, stability, labels, help, buckets, deprecatedSince } = parseFamily(families[name] as FamilyRow)
    const since = deprecatedSince === undefined ? '' : ` Deprecated since ${deprecatedSince}.`
    const bounds = buckets === undefined ? '' : ` (${buckets})`
    const words = labels.length === 0 ? '' : `\`${labels.join(' ')}\``
    const cells = [`\`${name}\``, type + bounds, stability, words, help + since]
    return `| ${cells.join(' | ')} |`
  })
  return [
    '| Name | Type (buckets) | Stability | Labels | Meaning |',
    '| --- | --- | --- | --- | --- |',
    ...rows.map((row) => row.replaceAll(/\s+/g, ' ')),
  ]
}

if (import.meta.main) writeFileSync(DOC, renderDoc())
