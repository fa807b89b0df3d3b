/** Scenes of the kubectl comparison that describe every kind, and missing objects. */
import type { Scene } from '../scene.ts'

const KINDS = (
  'pods rc secrets svc sa nodes limitranges quota pv pvc ns endpoints cm endpointslices hpa ing ingressclasses servicecidr ' +
  'ipaddresses netpol jobs cronjobs sts deploy ds rs storageclass csinodes vac pdb roles clusterroles rolebindings ' +
  'clusterrolebindings priorityclasses crd widgets leases csidriver apiservices flowschemas prioritylevelconfigurations'
).split(' ')

export const describedKinds: Scene = {
  name: 'describe/kinds',
  mode: 'reads',
  lines: [...KINDS.map((kind) => `describe ${kind}`), ...KINDS.map((kind) => `describe ${kind} nobody`)],
}
