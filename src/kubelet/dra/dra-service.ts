/** The gRPC service `DRAPlugin` that DRA drivers serve, in all supported versions. */
import { DRAPlugin } from '#apis/wire/dra.ts'

const PACKAGE = '/k8s.io.kubelet.pkg.apis.dra.v1beta1'

/** It has the messages of v1. */
const v1beta1: DRAPlugin = {
  nodePrepareResources: { ...DRAPlugin.nodePrepareResources, path: `${PACKAGE}.DRAPlugin/NodePrepareResources` },
  nodeUnprepareResources: { ...DRAPlugin.nodeUnprepareResources, path: `${PACKAGE}.DRAPlugin/NodeUnprepareResources` },
}

/** By supported version, newest first. */
export const DRA_SERVICES: readonly (readonly [version: string, methods: DRAPlugin])[] = [
  ['v1.DRAPlugin', DRAPlugin],
  ['v1beta1.DRAPlugin', v1beta1],
]
