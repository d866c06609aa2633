# SPDX-License-Identifier: Apache-2.0
"""Compares two running servers by hand:

    python3 -m differential KUBECONFIG-OF-SUBLET KUBECONFIG-OF-KUBE-APISERVER [-k KIND]... [-n CASES] [-s SEED]
    python3 -m differential HERE THERE --talk [PART OF A NAME]      the conversations of protocol.yaml
    python3 -m differential --serve DIRECTORY       keeps a kube-apiserver without controllers in the foreground
"""
import argparse
import json
import signal
import sys
import time

from testenv.api import Api

from . import protocol
from .mutate import REMOVE
from .servers import ApiServer, prepare
from .suite import NAMESPACE, Suite, unexpected


def serve(directory):
    server = ApiServer(directory).start()
    print(server.kubeconfig, flush=True)
    try:
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        server.stop()


def talk(servers, only):
    found, n = protocol.run(*servers, only)
    for ds in unexpected(found).values():
        for d in ds:
            print(f"{d.kind}: {d.case}\n  {d.what}\n    here  {d.here}\n    there {d.there}")
    print(f"{n} requests, {len(found)} differences")


def main():
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2])
    p = argparse.ArgumentParser()
    p.add_argument("here")
    p.add_argument("there")
    p.add_argument("-k", "--kind", action="append")
    p.add_argument("-n", "--cases", type=int, default=40)
    p.add_argument("-u", "--updates", type=int, default=25)
    p.add_argument("-s", "--seed", type=int, default=1)
    p.add_argument("-x", "--examples", type=int, default=1)
    p.add_argument("--talk", nargs="?", const="")
    args = p.parse_args()
    servers = [Api(args.here), Api(args.there)]
    for api in servers:
        prepare(api, NAMESPACE)
    start = time.monotonic()
    if args.talk is not None:
        return talk(servers, args.talk)
    suite = Suite(*servers, kinds=args.kind)
    found = unexpected(suite.run(args.cases, args.updates, args.seed))
    for key, ds in sorted(found.items(), key=lambda x: (x[0].split()[0], -len(x[1]))):
        print(f"{len(ds):4} {key}")
        for d in ds[:args.examples]:
            shown = [(".".join(map(str, path)), "REMOVE" if v is REMOVE else v) for path, v in d.changes]
            print(f"       {json.dumps(shown)[:600]}")
    print(f"{suite.compared} compared, {len(found)} differences in {time.monotonic() - start:.0f} s")


if __name__ == "__main__":
    main()
